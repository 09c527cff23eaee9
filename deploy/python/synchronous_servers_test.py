"""muster.fit() in sync on parameter servers gives the numbers of Keras' fit() with the batches of
all workers, whatever has trained the model before."""

import tempfile
import unittest

import keras
import numpy as np

import muster

FEATURES = 8
TOLERANCE = 2e-6


def data(count):
    x = np.random.default_rng(0).normal(size=(count, FEATURES)).astype("float32")
    return x, (x.sum(axis=1, keepdims=True) > 0).astype("float32")


def model(optimizer):
    keras.utils.set_random_seed(3)
    made = keras.Sequential([keras.Input((FEATURES,)),
                             keras.layers.Dense(16, "tanh", name="hidden"),
                             keras.layers.Dense(1, "sigmoid", name="outputs")])
    made.compile(optimizer, "binary_crossentropy")
    return made


def fit_in_sync(trained, workers, steps, batch_size, backup_workers=0, **options):
    x, y = data(steps * batch_size)
    return muster.fit(trained, x, y, batch_size=batch_size, shuffle=False, verbose=0,
                      workers=workers, ps=2, strategy={"parameter_server": {
                          "synchronous": True, "backup_workers": backup_workers}}, **options)


def fit_in_keras(trained, steps, batch_size, **options):
    x, y = data(steps * batch_size)
    return trained.fit(x, y, batch_size=batch_size, shuffle=False, verbose=0, **options)


class SynchronousServersTest(unittest.TestCase):
    def assert_same(self, trained, wanted):
        for value, other in zip(trained.get_weights(), wanted.get_weights()):
            np.testing.assert_allclose(value, other, atol=TOLERANCE)
        self.assertEqual(int(trained.optimizer.iterations), int(wanted.optimizer.iterations))

    def test_other_numbers_of_workers_and_keras_continue_each_other(self):
        def optimizer():
            return keras.optimizers.Adam(
                keras.optimizers.schedules.ExponentialDecay(0.01, 5, 0.8))

        trained, wanted = model(optimizer()), model(optimizer())
        fit_in_sync(trained, workers=2, steps=8, batch_size=16)
        fit_in_sync(trained, workers=3, steps=6, batch_size=16)
        fit_in_keras(trained, steps=3, batch_size=32)
        fit_in_sync(trained, workers=2, steps=8, batch_size=16)
        fit_in_keras(wanted, steps=4, batch_size=32)
        fit_in_keras(wanted, steps=2, batch_size=48)
        fit_in_keras(wanted, steps=3, batch_size=32)
        fit_in_keras(wanted, steps=4, batch_size=32)
        self.assert_same(trained, wanted)

    def test_averages_and_accumulation_count_updates(self):
        def optimizer():
            return keras.optimizers.SGD(0.1, use_ema=True, ema_momentum=0.9,
                                        ema_overwrite_frequency=3, gradient_accumulation_steps=2)

        trained, wanted = model(optimizer()), model(optimizer())
        fit_in_sync(trained, workers=2, steps=24, batch_size=16)
        fit_in_keras(wanted, steps=12, batch_size=32)
        self.assert_same(trained, wanted)

    def test_a_round_adds_about_the_mean_of_the_statistics_of_its_batches(self):
        trained = keras.Sequential([keras.Input((FEATURES,)),
                                    keras.layers.BatchNormalization(momentum=0.5),
                                    keras.layers.Dense(1, "sigmoid")])
        trained.compile("sgd", "binary_crossentropy")
        fit_in_sync(trained, workers=3, steps=3, batch_size=16)
        x, _ = data(48)
        # A step may read what another step of the round has added, so the mean is not exact.
        # The sum would be three times as large.
        size, wanted = (np.linalg.norm(value) for value in (
            trained.layers[0].moving_mean, 0.5 * x.mean(axis=0)))
        self.assertLess(size, 1.6 * wanted)
        self.assertGreater(size, 0.5 * wanted)

    def test_a_backup_resumes_with_another_number_of_workers(self):
        def optimizer():
            return keras.optimizers.SGD(0.1, momentum=0.9)

        trained, wanted = model(optimizer()), model(optimizer())
        with tempfile.TemporaryDirectory() as folder:
            def backup():
                return [keras.callbacks.BackupAndRestore(folder, delete_checkpoint=False)]

            # The fifth batch waits for others in vain.
            fit_in_sync(model(optimizer()), workers=2, steps=5, batch_size=16, epochs=1,
                        callbacks=backup())
            fit_in_sync(trained, workers=1, steps=5, batch_size=16, epochs=2, callbacks=backup())
        fit_in_keras(wanted, steps=2, batch_size=32)
        fit_in_keras(wanted, steps=5, batch_size=16)
        self.assert_same(trained, wanted)


if __name__ == "__main__":
    unittest.main()
