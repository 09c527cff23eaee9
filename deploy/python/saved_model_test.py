"""The contents of saved models. MUSTER_KERAS_PYTHON names a Python with Keras."""

import inspect
import json
import os
import tempfile
import unittest
import zipfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""

try:
    import keras
    import numpy as np
except ModuleNotFoundError as error:
    print(f"{error}: the test is skipped. Set MUSTER_KERAS_PYTHON to a Python with Keras.")
    raise SystemExit(0)

from muster import model_file, saved_model

# Values of arguments whose default does not show which other values are valid.
OTHER_VALUES = {"axis": 1, "class_id": 1, "ignore_class": 1, "target_class_ids": [0],
                "thresholds": [0.25, 0.5], "threshold": 0.25, "top_k": 2}
# Arguments without which an object cannot be created.
NEEDED = {"fn": keras.losses.huber, "num_classes": 3, "target_class_ids": [0], "recall": 0.5,
          "precision": 0.5, "sensitivity": 0.5, "specificity": 0.5}


def other_than(name, default):
    """Returns a valid value of an argument other than its default; None if none is known."""
    if isinstance(default, bool):
        return not default
    if name in OTHER_VALUES:
        return OTHER_VALUES[name]
    if isinstance(default, (int, float)):
        return default + 1 if isinstance(default, int) else default / 2
    return None


def classes_of(module, base):
    return [kind for name, kind in sorted(vars(module).items())
            if inspect.isclass(kind) and issubclass(kind, base) and name == kind.__name__
            and "get_config" not in getattr(kind, "__abstractmethods__", ())]


def arguments_of(thing):
    return {**vars(thing), **getattr(thing, "_fn_kwargs", {})}


def mlp(**compile_options):
    model = keras.Sequential([
        keras.Input((4,)), keras.layers.Dense(3, kernel_regularizer="l2", name="first"),
        keras.layers.Dropout(0.5, name="dropped"), keras.layers.BatchNormalization(),
        keras.layers.Dense(2, kernel_constraint=keras.constraints.MaxNorm(2))])
    compile_options.setdefault("loss", "mse")
    compile_options.setdefault("optimizer", "adam")
    model.compile(**compile_options)
    return model


class SavedModelTest(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = os.path.join(folder.name, "model.keras")

    def save(self, model):
        """Returns the compile configuration in the saved file."""
        model_file.check_model(model)
        model_file.build_layers(model, None)
        model_file.save_model(model, self.path)
        with zipfile.ZipFile(self.path) as archive:
            return json.loads(archive.read("config.json"))["compile_config"]

    def test_each_argument_of_losses_and_metrics_is_saved(self):
        checked = set()
        for kind in (classes_of(keras.losses, keras.losses.Loss)
                     + classes_of(keras.metrics, keras.metrics.Metric)):
            parameters = inspect.signature(kind.__init__).parameters
            needed = {name: value for name, value in NEEDED.items() if name in parameters}
            for name, parameter in parameters.items():
                value = other_than(name, parameter.default)
                if name in ("self", "name", "dtype", "reduction") or value is None:
                    continue
                thing = kind(**{**needed, name: value})
                missing = saved_model.missing_arguments(thing, "it")
                rebuilt = kind.from_config({**thing.get_config(), **missing})
                self.assertEqual(arguments_of(rebuilt).get(name), arguments_of(thing).get(name),
                                 f"{kind.__name__}.{name}")
                checked.add((kind.__name__, name))
        self.assertGreater(len(checked), 50)
        # Keras' get_config() lacks these.
        self.assertLessEqual({("Huber", "delta"), ("CosineSimilarity", "axis"),
                              ("SparseCategoricalCrossentropy", "axis"),
                              ("SparseTopKCategoricalAccuracy", "from_sorted_ids")}, checked)

    def test_the_file_has_what_get_config_leaves_out(self):
        huber = keras.losses.Huber(delta=0.1)
        similarity = keras.metrics.CosineSimilarity(axis=1)
        compiled = self.save(mlp(loss=huber, metrics=["mae", similarity]))
        self.assertEqual(compiled["loss"]["config"]["delta"], 0.1)
        self.assertIn('"axis": 1', json.dumps(compiled["metrics"]))
        # Saving does not change the objects.
        self.assertNotIn("get_config", vars(huber))
        self.assertNotIn("delta", huber.get_config())

    def test_an_object_may_be_used_twice(self):
        inputs = keras.Input((4,))
        model = keras.Model(inputs, [keras.layers.Dense(2)(inputs), keras.layers.Dense(2)(inputs)])
        huber = keras.losses.Huber(delta=0.1)
        model.compile("sgd", [huber, huber])
        losses = self.save(model)["loss"]
        self.assertEqual([loss["config"]["delta"] for loss in losses], [0.1, 0.1])

    def test_ordinary_models_are_saved(self):
        for optimizer in classes_of(keras.optimizers, keras.optimizers.Optimizer):
            if optimizer.__name__ in ("Optimizer", "LossScaleOptimizer", "MultiOptimizer"):
                continue
            for options in ({}, {"use_ema": True, "ema_overwrite_frequency": 2},
                            {"gradient_accumulation_steps": 2}):
                with self.subTest(optimizer=optimizer.__name__, **options):
                    self.save(mlp(optimizer=optimizer(0.1, **options)))
        frozen = mlp()
        frozen.get_layer("first").trainable = False
        changed = mlp(optimizer=keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD(0.1)))
        changed.get_layer("dropped").rate = 0.25
        inputs = keras.Input((4, 3))
        recurrent = keras.Model(inputs, keras.layers.Bidirectional(keras.layers.LSTM(
            2, dropout=0.5, kernel_regularizer=keras.regularizers.L1L2(0.1, 0.2)))(inputs))
        recurrent.compile("sgd", "mse")
        images = keras.Sequential([
            keras.Input((8, 8, 3)), keras.layers.RandomFlip(seed=3), keras.layers.RandomGrayscale(),
            keras.layers.Conv2D(2, 3, activation=keras.activations.gelu),
            keras.layers.SeparableConv2D(2, 3), keras.layers.GlobalAveragePooling2D()])
        images.compile(keras.optimizers.SGD(
            keras.optimizers.schedules.CosineDecay(0.1, 10)), "mse")
        cells = keras.Sequential([keras.Input((4, 3)), keras.layers.RNN(
            [keras.layers.LSTMCell(2), keras.layers.GRUCell(2)])])
        cells.compile("sgd", "mse")
        for model in (frozen, changed, recurrent, images, cells):
            self.save(model)
            # Saving does not change the config.
            loaded = keras.models.load_model(self.path)
            self.assertEqual(json.dumps(loaded.get_config(), sort_keys=True),
                             json.dumps(model.get_config(), sort_keys=True))

    def test_models_that_were_trained_are_saved(self):
        model = mlp(metrics=["mae", keras.metrics.CosineSimilarity(axis=1), keras.metrics.AUC(),
                             keras.metrics.MeanSquaredError()])
        model.fit(np.ones((8, 4)), np.ones((8, 2)), verbose=0)
        self.save(model)

    def test_what_a_file_cannot_represent_is_refused(self):
        excluding = keras.optimizers.AdamW(weight_decay=0.1)
        excluding.exclude_from_weight_decay(var_names=["kernel"])
        crossentropy = keras.losses.BinaryCrossentropy()
        crossentropy.from_logits = True  # The wrapped function keeps the former value.

        def momentum(model):
            model.optimizer.build(model.trainable_variables)
            model.optimizer.momentum = 0.9

        for message, options, change in (
                (r"optimizer AdamW: exclude_from_weight_decay\(\) is not supported",
                 {"optimizer": excluding}, None),
                ("loss BinaryCrossentropy: from_logits is False, but the saved model would",
                 {"loss": crossentropy}, None),
                ("layer first: regularizer of kernel is .*L2.*config says .*L1",
                 {}, lambda model: setattr(model.get_layer("first"), "kernel_regularizer",
                                           keras.regularizers.L1(0.1))),
                ("layer first: trainable of kernel is False, but the layer's config says True",
                 {}, lambda model: setattr(model.get_layer("first").kernel, "trainable", False)),
                ("layer first has 2 variables, but its config makes 1",
                 {}, lambda model: setattr(model.get_layer("first"), "use_bias", False)),
                (r"layer first: call\(\) is replaced by Python code",
                 {}, lambda model: setattr(model.get_layer("first"), "call", abs)),
                ("optimizer SGD has 2 variables, but its config makes 8",
                 {"optimizer": keras.optimizers.SGD()}, momentum),
                ("model.optimizer was replaced after compile",
                 {}, lambda model: setattr(model, "optimizer", keras.optimizers.SGD()))):
            with self.subTest(message):
                model = mlp(**options)
                if change is not None:
                    change(model)
                with self.assertRaisesRegex(ValueError, message):
                    self.save(model)
                self.assertFalse(os.path.exists(self.path))

    def test_an_exclusion_without_weight_decay_changes_nothing(self):
        optimizer = keras.optimizers.SGD()
        optimizer.exclude_from_weight_decay(var_names=["kernel"])
        self.save(mlp(optimizer=optimizer))

    def test_weights_that_do_not_fit_are_errors(self):
        model = mlp()
        self.save(model)
        other = mlp(optimizer="sgd")
        model_file.build_layers(other, None)
        with self.assertRaisesRegex(ValueError, "Skipping variable loading for optimizer"):
            model_file.load_weights(other, self.path)
        with self.assertRaisesRegex(FileNotFoundError, "there is no /none"):
            model_file.load_weights(model, "/none")


if __name__ == "__main__":
    unittest.main()
