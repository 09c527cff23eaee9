"""muster.train(): functions of JAX.

MUSTER_KERAS_PYTHON names a Python with Keras, JAX and a PJRT plugin.
"""

import os
import unittest

from test_models import FEATURES, data, keras, np

import muster

TOLERANCE = 2e-5


class TrainTest(unittest.TestCase):
    """train() against a loop in JAX."""

    @staticmethod
    def params():
        generator = np.random.default_rng(3)
        return {"layers": [{"kernel": generator.normal(size=(FEATURES, 6)).astype("float32")},
                           {"kernel": generator.normal(size=(6, 3)).astype("float32"),
                            "bias": np.zeros(3, "float32")}]}

    @staticmethod
    def loss(params, batch):
        import jax

        first, second = params["layers"]
        logits = jax.numpy.tanh(batch["x"] @ first["kernel"]) @ second["kernel"] + second["bias"]
        losses = -jax.nn.log_softmax(logits)[jax.numpy.arange(len(logits)), batch["y"]]
        accuracy = jax.numpy.mean(jax.numpy.argmax(logits, axis=1) == batch["y"])
        return jax.numpy.mean(losses), {"right": accuracy.astype("float32")}

    def test_trains_as_a_loop_in_jax(self):
        import jax

        x, y = data()
        expected = jax.tree.map(jax.numpy.asarray, self.params())
        differentiate = jax.jit(jax.grad(self.loss, has_aux=True))
        for _ in range(2):
            for begin in range(0, len(x), 32):
                batch = {"x": x[begin:begin + 32], "y": y[begin:begin + 32]}
                gradients, _ = differentiate(expected, batch)
                expected = jax.tree.map(lambda a, b: a - 0.1 * b, expected, gradients)
        for cluster in ({}, {"workers": 2}, {"workers": 1, "ps": 1}):
            with self.subTest(cluster):
                params, history = muster.train(
                    self.loss, self.params(), {"x": x, "y": y}, keras.optimizers.SGD(0.1),
                    has_aux=True, epochs=2, shuffle=False, verbose=0, **cluster)
                jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=TOLERANCE),
                             params, expected)
                self.assertEqual(set(history.history), {"loss", "right"})

    def test_trains_with_optax(self):
        import jax
        import optax

        x, y = data()
        is_matrix = lambda params: jax.tree.map(lambda leaf: leaf.ndim > 1, params)
        for name, transformation in {
                "adamw": optax.adamw(optax.cosine_decay_schedule(0.05, 20), weight_decay=0.1),
                "masked": optax.adamw(0.02, weight_decay=0.5, mask=is_matrix),
                "momentum": optax.sgd(0.05, momentum=0.9, nesterov=True),
                "lamb": optax.lamb(0.02)}.items():
            expected = {**jax.tree.map(jax.numpy.asarray, self.params()), "steps": np.int32(3)}
            arrays = lambda tree: {"layers": tree["layers"], "steps": None}
            state = transformation.init(arrays(expected))
            differentiate = jax.jit(jax.grad(self.loss, has_aux=True, allow_int=True))
            for _ in range(2):
                for begin in range(0, len(x), 32):
                    batch = {"x": x[begin:begin + 32], "y": y[begin:begin + 32]}
                    gradients, _ = differentiate(expected, batch)
                    updates, state = transformation.update(arrays(gradients), state,
                                                           arrays(expected))
                    expected = {**optax.apply_updates(arrays(expected), updates),
                                "steps": expected["steps"]}
            for cluster in ({"workers": 2}, {"workers": 1, "ps": 1}):
                with self.subTest(name, cluster=cluster):
                    params, _ = muster.train(
                        self.loss, {**self.params(), "steps": np.int32(3)}, {"x": x, "y": y},
                        transformation, has_aux=True, epochs=2, shuffle=False, verbose=0, **cluster)
                    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=TOLERANCE),
                                 params, expected)

    def test_refuses_transformations_that_join_arrays(self):
        import optax

        x, y = data()
        clipped = optax.chain(optax.clip_by_global_norm(1.0), optax.adam(1e-2))
        for transformation, message in (
                (clipped, r"depends on other arrays; .*muster.Optax\(\) takes global_clipnorm"),
                (optax.noisy_sgd(0.1), "neither an array for each parameter nor the number")):
            with self.assertRaisesRegex(ValueError, message):
                muster.train(self.loss, self.params(), {"x": x, "y": y}, transformation,
                             has_aux=True, verbose=0)
        muster.train(self.loss, self.params(), {"x": x, "y": y},
                     muster.Optax(optax.adam(1e-2), global_clipnorm=1.0), has_aux=True, verbose=0)

    def test_keys_differ_between_steps(self):
        import jax

        def noise(params, batch, key):
            return jax.numpy.mean(jax.random.uniform(key, (4,))) + 0 * params["w"] + 0 * batch.sum()

        x, _ = data()
        _, history = muster.train(noise, {"w": np.float32(1)}, x, takes_key=True, epochs=4,
                                  batch_size=200, verbose=0, seed=5)
        self.assertEqual(len(set(history.history["loss"])), 4, history.history)


if __name__ == "__main__":
    if not os.environ.get("MUSTER_PJRT_PLUGIN"):
        print("MUSTER_PJRT_PLUGIN names no PJRT plugin: the test is skipped.")
        raise SystemExit(0)
    unittest.main()
