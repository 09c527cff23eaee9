"""Models that muster.export() writes, in job files.

MUSTER_KERAS_PYTHON names a Python with Keras, JAX and a PJRT plugin.
"""

import os
import re
import subprocess
import sys
import tempfile
import unittest
import zipfile

from test_models import FEATURES, data, keras, np

import muster
from muster import executables


class Gain(keras.layers.Layer):
    def build(self, shape):
        self.gain = self.add_weight(shape=(shape[-1],), initializer="ones", name="gain")

    def call(self, x):
        return keras.ops.sin(x) * self.gain


class Classifier(keras.Model):
    def __init__(self):
        super().__init__()
        self.hidden = keras.layers.Dense(8, activation="relu")
        self.normalize = keras.layers.BatchNormalization()
        self.logits = keras.layers.Dense(3)

    def call(self, x, training=False):
        return self.logits(self.normalize(self.hidden(x), training=training))


def compiled(model):
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True),
                  metrics=["accuracy"])
    return model


def functional():
    keras.utils.set_random_seed(5)
    inputs = keras.Input((FEATURES,))
    return compiled(keras.Model(inputs, keras.layers.Dense(3)(Gain()(
        keras.layers.Dense(8, activation="tanh")(inputs)))))


def subclassed():
    keras.utils.set_random_seed(7)
    model = compiled(Classifier())
    model(np.zeros((2, FEATURES), "float32"))
    return model


def modules(make):
    """Returns the modules of a model, in the text of its file."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.keras")
        muster.export(make(), path, *data(), batch_sizes=[8])
        with zipfile.ZipFile(path) as file:
            config = file.read("config.json").decode()
    return re.findall(r"stablehlo[^A-Za-z0-9]+([A-Za-z0-9+/=]+)", config)


class ExportTest(unittest.TestCase):
    def test_a_model_that_is_built_again_has_the_same_modules(self):
        for make in (functional, subclassed):
            first = modules(make)
            self.assertTrue(first)
            self.assertTrue(modules(make) == first)  # The texts are long.

    def test_bad_batch_sizes_are_named(self):
        x, y = data()
        for sizes in ([], [0], "8", [1.5]):
            with self.subTest(sizes), self.assertRaisesRegex(ValueError, "batch_sizes"):
                muster.export(functional(), "unused.keras", x, y, batch_sizes=sizes)

    def test_exported_models_train_from_job_files(self):
        x, y = data()
        with tempfile.TemporaryDirectory() as folder:
            for name, array in (("x", x), ("y", y)):
                np.save(os.path.join(folder, name), array)
            exported = os.path.join(folder, "exported.keras")
            # Labels are inputs of a step that is one program.
            for make, more in ((functional, ""), (
                    subclassed, 'more_features { path: "${job_dir}/y.npy" }')):
                with self.subTest(more):
                    with open(os.path.join(folder, "model.job"), "w", encoding="utf-8") as file:
                        file.write('model { keras: "${job_dir}/exported.keras" }\n'
                                   'train { npy { features: "${job_dir}/x.npy" ' + more +
                                   ' labels: "${job_dir}/y.npy" } }\n'
                                   "batch_size: 32 epochs: 3\n")
                    wanted, trained = make(), make()
                    wanted.fit(x, y, batch_size=32, epochs=3, shuffle=False, verbose=0)
                    muster.export(trained, exported, x, y, batch_sizes=[32, 8])
                    run_dir = tempfile.mkdtemp(dir=folder)
                    subprocess.run([executables.find_launch(), f"--run_dir={run_dir}",
                                    f"--job={folder}/model.job", "--workers=0", "--ps=0"],
                                   check=True, capture_output=True, timeout=300)
                    muster.load_weights(trained, f"{run_dir}/final_model.keras", exported)
                    for value, other in zip(trained.get_weights(), wanted.get_weights()):
                        np.testing.assert_allclose(value, other, atol=2e-5)

    def test_exported_models_predict_in_the_cluster(self):
        x, _ = data()
        x = x[:64]
        with tempfile.TemporaryDirectory() as folder:
            np.save(os.path.join(folder, "x"), x)
            with open(os.path.join(folder, "model.job"), "w", encoding="utf-8") as file:
                file.write('model { keras: "${job_dir}/exported.keras" }\n'
                           'train { npy { features: "${job_dir}/x.npy" } }\n'
                           'predict_data { npy { features: "${job_dir}/x.npy" } }\n'
                           "batch_size: 32\n"
                           # A model that only predicts has no compile settings.
                           "optimizer { sgd {} } loss { mean_squared_error {} }\n")
            for make in (functional, subclassed):
                with self.subTest(make.__name__):
                    model = make()
                    muster.export(model, os.path.join(folder, "exported.keras"), x,
                                  np.zeros(64, "int64") if make is functional else None,
                                  for_prediction=True)
                    coordinator = os.path.join(os.environ["MUSTER_BIN"],
                                               "coordinator/coordinator")
                    done = subprocess.run(
                        [coordinator, f"--job={folder}/model.job", f"--predict={folder}/out.npy",
                         f"--weights={folder}/exported.keras"], check=False, capture_output=True,
                        text=True, timeout=300)
                    self.assertEqual(done.returncode, 0, done.stderr)
                    np.testing.assert_allclose(np.load(f"{folder}/out.npy"),
                                               model.predict(x, verbose=0), atol=2e-5)

    def test_the_command_exports_models_of_files(self):
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "parts.py"), "w", encoding="utf-8") as file:
                file.write("import keras\n"
                           "@keras.saving.register_keras_serializable('parts')\n"
                           "class Twice(keras.layers.Layer):\n"
                           "    def call(self, x):\n        return x + x * x\n")
            script = ("import keras, numpy, parts\n"
                      "m = keras.Sequential([keras.Input((3,)), parts.Twice()])\n"
                      "m.compile('sgd', 'mse')\nm.save('model.keras')\n"
                      "numpy.save('x.npy', numpy.ones((4, 3), 'float32'))\n")
            environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
            subprocess.run([sys.executable, "-c", script], cwd=folder, check=True, timeout=300,
                           env=environment)
            command = [sys.executable, "-m", "muster.export_command", "model.keras", "--x=x.npy",
                       "--y=x.npy", "--batch_size=2", "-o", "out.keras"]
            for options, message in (([], "(?s)muster-export: .*Twice"),
                                     (["--import=parts"], None)):
                done = subprocess.run([*command, *options], cwd=folder, check=False, timeout=300,
                                      env=environment, capture_output=True, text=True)
                if message:
                    self.assertEqual(done.returncode, 1)
                    self.assertRegex(done.stderr, message)
                else:
                    self.assertEqual(done.returncode, 0, done.stderr)
            with zipfile.ZipFile(os.path.join(folder, "out.keras")) as archive:
                self.assertIn(b"muster.programs", archive.read("config.json"))


if __name__ == "__main__":
    if not os.environ.get("MUSTER_PJRT_PLUGIN"):
        print("MUSTER_PJRT_PLUGIN names no PJRT plugin: the test is skipped.")
        raise SystemExit(0)
    unittest.main()
