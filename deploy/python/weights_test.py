"""Weights in files of safetensors. MUSTER_KERAS_PYTHON names a Python with Keras, on JAX."""

import os
import subprocess
import sys
import tempfile
import unittest

from test_models import FEATURES, classifier, data, keras, np

import muster
from muster import safetensors_file


def named(dtype="float32"):
    """Returns a model whose layers have names that do not depend on others."""
    keras.utils.set_random_seed(4)
    return keras.Sequential([
        keras.Input((FEATURES,), name="in"), keras.layers.Dense(4, name="first", dtype=dtype),
        keras.layers.BatchNormalization(name="normalize"), keras.layers.Dense(3, name="last")])


class WeightsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.path = os.path.join(folder.name, "weights.safetensors")

    def assert_same_bits(self, values, others):
        self.assertEqual(len(values), len(others))
        for value, other in zip(values, others):
            self.assertEqual(np.asarray(value).tobytes(), np.asarray(other).tobytes())

    def test_a_trained_model_comes_back_with_the_same_bits(self):
        model = named()
        model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
        muster.fit(model, *data(), batch_size=20, epochs=2, workers=2, verbose=0)
        muster.save_weights(model, self.path)
        self.assertEqual(sorted(safetensors_file.read(self.path)), [
            "first/bias", "first/kernel", "last/bias", "last/kernel", "normalize/beta",
            "normalize/gamma", "normalize/moving_mean", "normalize/moving_variance"])
        other = named()
        self.assertNotEqual(other.get_weights()[0].tobytes(), model.get_weights()[0].tobytes())
        muster.load_weights(other, self.path)
        self.assert_same_bits(other.get_weights(), model.get_weights())

    def test_variables_keep_their_dtype(self):
        model, other = named("bfloat16"), named("bfloat16")
        model.set_weights([value + 1 for value in model.get_weights()])
        muster.save_weights(model, self.path)
        self.assertEqual(safetensors_file.read(self.path)["first/kernel"].dtype.name, "bfloat16")
        muster.load_weights(other, self.path)
        self.assert_same_bits(other.get_weights(), model.get_weights())
        converted = named()
        muster.load_weights(converted, self.path)
        np.testing.assert_array_equal(converted.get_weights()[0],
                                      np.asarray(model.get_weights()[0], "float32"))

    def test_parameters_of_jax_come_back(self):
        import jax

        params = {"layers": [{"kernel": jax.numpy.ones((2, 3), "bfloat16")},
                             {"kernel": jax.numpy.arange(3)}], "scale": np.float32(0.1)}
        muster.save_weights(params, self.path)
        self.assertEqual(sorted(safetensors_file.read(self.path)),
                         ["layers.0.kernel", "layers.1.kernel", "scale"])
        zeros = jax.tree.map(lambda leaf: leaf * 0, params)
        found = muster.load_params(zeros, self.path)
        self.assertEqual(jax.tree.structure(found), jax.tree.structure(params))
        self.assert_same_bits(jax.tree.leaves(found), jax.tree.leaves(params))

    def test_what_does_not_match_is_named(self):
        muster.save_weights(named(), self.path)
        with self.assertRaisesRegex(ValueError, "it lacks .*dense.*/kernel.* has .*first/bias"):
            muster.load_weights(classifier(), self.path)
        tensors = safetensors_file.read(self.path)
        for wrong, message in ((np.zeros((8, 5), "float32"), r"shape \[8, 5\]; expected \[8, 4\]"),
                               (np.zeros((8, 4), "int32"), "dtype int32; expected float32")):
            safetensors_file.write(self.path, {**tensors, "first/kernel": wrong})
            with self.subTest(message), self.assertRaisesRegex(
                    ValueError, f"first/kernel has {message}"):
                muster.load_weights(named(), self.path)
        with self.assertRaisesRegex(ValueError, "expected a name that ends in .safetensors"):
            muster.save_weights(named(), "weights.h5")
        with self.assertRaisesRegex(ValueError, "final_model.keras needs job"):
            muster.load_weights(named(), "final_model.keras")
        with self.assertRaisesRegex(ValueError, "has no variables yet"):
            muster.save_weights(keras.Sequential([keras.layers.Dense(2)]), self.path)

    def run_export(self, *options):
        return subprocess.run(
            [sys.executable, "-m", "muster.export_command", *options], cwd=self.folder, timeout=300,
            check=False, capture_output=True, text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})

    def test_the_command_writes_and_reads_weights(self):
        model = named()
        model.compile("sgd", "mse")
        model.save(os.path.join(self.folder, "model.keras"))
        done = self.run_export("model.keras", "-o", "weights.safetensors")
        self.assertEqual(done.returncode, 0, done.stderr)
        tensors = {name: value * 2 for name, value in safetensors_file.read(self.path).items()}
        safetensors_file.write(self.path, tensors)
        np.save(os.path.join(self.folder, "x.npy"), np.zeros((2, FEATURES), "float32"))
        np.save(os.path.join(self.folder, "y.npy"), np.zeros((2, 3), "float32"))
        done = self.run_export("model.keras", "--weights=weights.safetensors", "--x=x.npy",
                               "--y=y.npy", "-o", "out.keras")
        self.assertEqual(done.returncode, 0, done.stderr)
        found = keras.models.load_model(os.path.join(self.folder, "out.keras"))
        self.assert_same_bits(found.get_weights(), [value * 2 for value in model.get_weights()])
        done = self.run_export("model.keras", "-o", "out.keras")
        self.assertIn("--x is required", done.stderr)


if __name__ == "__main__":
    unittest.main()
