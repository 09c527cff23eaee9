"""Compares callbacks that are Python code under muster.fit() with those under Keras' fit().

MUSTER_KERAS_PYTHON names a Python with Keras.
"""

import os
import tempfile
import unittest

from test_models import classifier, data, keras, np, tasks_of

import muster
from muster.lazy_weights import LazyWeights

TOLERANCE = 2e-5
SIZES = {"batch_size": 50, "epochs": 3, "shuffle": False}
CLUSTERS = [{}, {"workers": 2}, {"workers": 1, "ps": 1}]


class Recorder(keras.callbacks.Callback):
    """Records each hook with its number and its logs."""

    def __init__(self):
        super().__init__()
        self.calls = []

    def record(self, hook, number=None, logs=None):
        self.calls.append((hook, number, {name: round(float(value), 3)
                                          for name, value in (logs or {}).items()}))


for _hook in ("train_begin", "train_end", "test_begin", "test_end"):
    setattr(Recorder, f"on_{_hook}",
            lambda self, logs=None, hook=_hook: self.record(hook, None, logs))
for _hook in ("epoch_begin", "epoch_end", "train_batch_begin", "train_batch_end",
              "test_batch_begin", "test_batch_end"):
    setattr(Recorder, f"on_{_hook}",
            lambda self, number, logs=None, hook=_hook: self.record(hook, number, logs))


class KeepsWeights(keras.callbacks.Callback):
    """Keeps what the model has and computes after each epoch."""

    def on_train_begin(self, logs=None):
        self.weights, self.steps, self.predictions = [], [], []

    def on_epoch_end(self, epoch, logs=None):
        self.weights.append(self.model.get_weights())
        self.steps.append(int(self.model.optimizer.iterations))
        self.predictions.append(self.model.predict(data()[0][:4], verbose=0))


class Halves(keras.callbacks.Callback):
    """Assigns weights after an epoch."""

    def on_epoch_end(self, epoch, logs=None):
        if epoch == 0:
            self.model.set_weights([0.5 * weight for weight in self.model.get_weights()])


class Shrinks(Halves):
    """Assigns weights after a batch, too."""

    def on_train_batch_end(self, batch, logs=None):
        if batch == 2:
            kernel = self.model.layers[0].kernel
            kernel.assign(0.9 * np.array(kernel))


class Scores(keras.callbacks.Callback):
    """Adds a value to the logs, which a later callback watches."""

    def on_epoch_end(self, epoch, logs=None):
        logs["val_score"] = [1.0, 3.0, 2.0, 1.0, 0.0][epoch]


class Fails(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        if batch == 1:
            raise KeyError("broken")


class OwnCallbacksTest(unittest.TestCase):
    def fit_both(self, make_callbacks, make_model=classifier, cluster=None, **options):
        """Trains under Keras and on a cluster. Returns (model, callbacks, history) of each."""
        x, y = data()
        results = []
        for fit in (lambda model, **rest: model.fit(x, y, **rest),
                    lambda model, **rest: muster.fit(model, x, y, **rest, **(cluster or {}))):
            model, callbacks = make_model(), make_callbacks()
            history = fit(model, verbose=0, callbacks=callbacks, **{**SIZES, **options})
            results.append((model, callbacks, history))
        return results

    def assert_same_weights(self, model, other):
        for weight, wanted in zip(model.get_weights(), other.get_weights()):
            np.testing.assert_allclose(weight, wanted, atol=TOLERANCE)

    def test_hooks_come_as_in_keras(self):
        (_, (wanted,), _), (_, (own,), _) = self.fit_both(lambda: [Recorder()], epochs=2,
                                                          validation_split=0.25)
        calls = [[call[:2] for call in one.calls if call[0] != "test_batch_begin"]
                 for one in (wanted, own)]
        self.assertEqual(calls[1], calls[0])
        for call, keras_call in zip(own.calls, wanted.calls):
            if call[0] in ("epoch_end", "train_end"):
                self.assertEqual(call, keras_call)
            self.assertEqual(set(call[2]), set(keras_call[2]), call)

    def test_callbacks_see_the_weights(self):
        for cluster in CLUSTERS:
            with self.subTest(cluster=cluster):
                (_, (wanted,), _), (_, (own,), _) = self.fit_both(lambda: [KeepsWeights()],
                                                                  cluster=cluster)
                self.assertEqual(own.steps, wanted.steps)
                for values, keras_values in zip(own.weights, wanted.weights, strict=True):
                    for value, keras_value in zip(values, keras_values):
                        np.testing.assert_allclose(value, keras_value, atol=TOLERANCE)
                np.testing.assert_allclose(own.predictions, wanted.predictions, atol=TOLERANCE)

    def test_what_callbacks_change_takes_effect(self):
        scheduler = keras.callbacks.LearningRateScheduler(lambda epoch, rate: rate / (epoch + 1))
        for cluster in CLUSTERS:
            # Workers of parameter servers run ahead of the hooks of batches.
            assigning = Halves if "ps" in cluster else Shrinks
            with self.subTest(cluster=cluster):
                (wanted, _, keras_history), (own, _, history) = self.fit_both(
                    lambda: [assigning(), scheduler], cluster=cluster)
                self.assert_same_weights(own, wanted)
                self.assertEqual(set(history.history), set(keras_history.history))
                np.testing.assert_allclose(history.history["learning_rate"],
                                           keras_history.history["learning_rate"])

    def test_changes_repeat_bit_by_bit(self):
        x, y = data()
        results = []
        for _ in range(2):
            model = classifier()
            muster.fit(model, x, y, **SIZES, verbose=0, workers=2, callbacks=[Shrinks()])
            results.append(model.get_weights())
        for value, other in zip(*results):
            np.testing.assert_array_equal(value, other)

    def test_values_in_logs_reach_later_callbacks(self):
        def callbacks():
            return [Scores(), keras.callbacks.EarlyStopping("val_score", mode="max", patience=2),
                    Recorder()]

        (_, (_, _, wanted), keras_history), (_, (_, _, own), history) = self.fit_both(
            callbacks, epochs=5)
        self.assertEqual(history.epoch, keras_history.epoch)
        self.assertEqual(history.history["val_score"], [1.0, 3.0, 2.0, 1.0])
        self.assertEqual(own.calls[-2], wanted.calls[-2])

    def test_early_stopping_says_when_it_stopped(self):
        def callbacks():
            return [keras.callbacks.EarlyStopping("loss", min_delta=1.0, patience=2,
                                                  restore_best_weights=True)]

        (wanted, (stopped,), keras_history), (own, (own_stopped,), history) = self.fit_both(
            callbacks, epochs=6)
        self.assertEqual(history.epoch, keras_history.epoch)
        for name in ("stopped_epoch", "best_epoch", "wait", "restore_best_weights"):
            self.assertEqual(getattr(own_stopped, name), getattr(stopped, name), name)
        self.assertAlmostEqual(own_stopped.best, stopped.best, places=5)
        self.assert_same_weights(own, wanted)

    def test_callbacks_end_training(self):
        def callbacks():
            model_stops = keras.callbacks.LambdaCallback()
            model_stops.on_train_batch_end = lambda batch, logs=None: setattr(
                model_stops.model, "stop_training", batch == 2)
            return [model_stops, Recorder()]

        (wanted, _, keras_history), (own, (_, recorder), history) = self.fit_both(callbacks)
        self.assertEqual(history.epoch, keras_history.epoch)
        self.assertEqual(recorder.calls[-1][0], "train_end")
        self.assert_same_weights(own, wanted)

    def test_models_that_are_programs(self):
        if not os.environ.get("MUSTER_PJRT_PLUGIN"):
            self.skipTest("MUSTER_PJRT_PLUGIN is not set")
        (wanted, (_, kept), _), (own, (_, own_kept), _) = self.fit_both(
            lambda: [Shrinks(), KeepsWeights()], cluster={"backend": "program"})
        self.assert_same_weights(own, wanted)
        np.testing.assert_allclose(own_kept.predictions, kept.predictions, atol=TOLERANCE)

    def test_batches_from_a_generator(self):
        x, y = data()

        def batches():
            while True:
                for begin in range(0, 200, 50):
                    yield x[begin:begin + 50], y[begin:begin + 50]

        wanted, own, recorder = classifier(), classifier(), Recorder()
        wanted.fit(batches(), steps_per_epoch=4, epochs=2, verbose=0, callbacks=[Shrinks()])
        muster.fit(own, batches(), steps_per_epoch=4, epochs=2, verbose=0,
                   callbacks=[Shrinks(), recorder])
        self.assert_same_weights(own, wanted)
        self.assertEqual(len([call for call in recorder.calls if call[0] == "train_batch_end"]), 8)

    def test_batch_hooks_come_at_the_interval(self):
        x, y = data()
        recorder = Recorder()
        muster.fit(classifier(), x, y, batch_size=20, epochs=1, verbose=0, callbacks=recorder,
                   batch_hook_interval=5)
        self.assertEqual([call[1] for call in recorder.calls if call[0] == "train_batch_end"],
                         [4, 9])
        with self.assertRaisesRegex(ValueError, "batch_hook_interval=0; expected an integer of"):
            muster.fit(classifier(), x, y, callbacks=recorder, batch_hook_interval=0)

    def test_an_exception_ends_the_cluster_and_is_raised(self):
        x, y = data()
        for cluster in CLUSTERS:
            with self.subTest(cluster=cluster), tempfile.TemporaryDirectory() as folder:
                run_dir = os.path.join(folder, "run")
                with self.assertRaisesRegex(KeyError, "broken"):
                    muster.fit(classifier(), x, y, **SIZES, verbose=0, callbacks=[Fails()],
                               run_dir=run_dir, **cluster)
                self.assertEqual(tasks_of(run_dir), [])

    def test_what_is_refused(self):
        x, y = data()
        with self.assertRaisesRegex(ValueError, "callbacks has 3; expected callbacks of Keras"):
            muster.fit(classifier(), x, y, callbacks=[3])
        with tempfile.TemporaryDirectory() as folder, \
                self.assertRaisesRegex(ValueError, "callbacks has Fails: Python code runs in"):
            muster.write_job(classifier(), x, y, folder=folder, callbacks=[Fails()])

    def test_changes_that_the_cluster_cannot_take_are_refused(self):
        x, y = data()

        def forget(model):
            for slot in model.optimizer.variables[2:]:
                slot.assign(0 * np.array(slot))

        for change, message in (
                (lambda model: setattr(model.layers[0], "trainable", False), "`trainable`"),
                (lambda model: setattr(model.optimizer, "clipnorm", 0.1), "`clipnorm`"),
                (lambda model: model.optimizer.iterations.assign(0), "`iterations`"),
                (lambda model: model.compile("sgd", "mse"), "`optimizer`"),
                (forget, "the state of the optimizer"),
                (lambda model: setattr(model.optimizer, "learning_rate", float("nan")), "")):
            with self.subTest(message):
                model = classifier()
                callback = keras.callbacks.LambdaCallback(
                    on_epoch_end=lambda epoch, logs, model=model, change=change: change(model))
                error = ValueError if message else muster.MusterError
                with self.assertRaisesRegex(error, message or "learning_rate is nan"):
                    muster.fit(model, x, y, callbacks=[callback], epochs=2, verbose=0)

    def test_callbacks_get_the_model_before_the_cluster_does(self):
        class SetsRate(keras.callbacks.Callback):
            def set_model(self, model):
                super().set_model(model)
                model.optimizer.learning_rate = 0.5

            def set_params(self, params):
                super().set_params(params)
                self.model.name  # Is set.

        (wanted, _, _), (own, _, _) = self.fit_both(
            lambda: [SetsRate()], make_model=lambda: classifier("sgd"))
        self.assert_same_weights(own, wanted)


class LazyWeightsTest(unittest.TestCase):
    def setUp(self):
        self.model = classifier()
        self.model.optimizer.build(self.model.trainable_variables)
        self.load_count = 0
        self.weights = LazyWeights(self.model, self.load, [self.model.optimizer.iterations])

    def load(self):
        self.load_count += 1
        self.model.layers[0].bias.assign(np.full(8, self.load_count))

    def test_loads_once_when_a_variable_is_read(self):
        kind = type(self.model.layers[0].bias)
        self.weights.expire()
        self.assertEqual(type(self.model).__name__, "Sequential")
        self.model.optimizer.iterations.assign(7)
        self.assertEqual(self.load_count, 0)
        self.assertEqual(float(np.array(self.model.layers[0].bias)[0]), 1)
        np.array(self.model.layers[1].kernel)
        self.assertEqual(self.load_count, 1)
        self.assertEqual(int(self.model.optimizer.iterations), 7)
        self.assertEqual(self.weights.changed(), [])
        self.assertIs(type(self.model.layers[0].bias), kind)
        self.assertIs(type(self.model), keras.Sequential)

    def test_loads_before_a_variable_is_assigned(self):
        self.weights.expire()
        self.model.layers[1].bias.assign(np.ones(3))
        self.assertEqual(self.load_count, 1)
        self.assertEqual(float(np.array(self.model.layers[1].bias)[0]), 1)
        self.assertEqual([one.path for one in self.weights.changed()],
                         [self.model.layers[1].bias.path])

    def test_loads_before_compiled_functions_run(self):
        x = data()[0][:1]
        self.model.predict(x, verbose=0)
        for _ in range(2):
            self.weights.expire()
            self.model.predict(x, verbose=0)
        self.assertEqual(self.load_count, 2)

    def test_does_not_load_what_is_not_looked_at(self):
        self.weights.expire()
        self.model.stop_training = True
        self.model.optimizer.learning_rate = 0.5
        self.weights.restore()
        self.assertEqual(self.load_count, 1)  # The rate is a variable that was not kept.
        self.weights.expire()
        self.assertEqual(self.model.count_params(), 99)
        self.weights.restore()
        self.assertEqual(self.load_count, 1)


if __name__ == "__main__":
    unittest.main()
