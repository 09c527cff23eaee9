"""Compares muster.fit() with Keras' fit() for models with parts that Muster does not know.

MUSTER_KERAS_PYTHON names a Python with Keras, JAX and a PJRT plugin.
"""

import contextlib
import io
import os
import subprocess
import tempfile
import unittest

from test_models import FEATURES, data, keras, np

import muster
from muster import executables

TOLERANCE = 2e-5
SIZES = {"batch_size": 32, "epochs": 3, "shuffle": False}  # 200 rows: the last batch has 8.

layers, ops = keras.layers, keras.ops


class Scaled(layers.Layer):
    """Has a trainable variable, a counter, a loss of its own and, while training, noise."""

    def __init__(self, rate=0.0, **options):
        super().__init__(**options)
        self.rate = rate
        self.drop = layers.Dropout(rate, seed=3)

    def build(self, shape):
        self.scale = self.add_weight(shape=(shape[-1],), initializer="ones", name="scale")
        self.calls = self.add_weight(shape=(), initializer="zeros", trainable=False, name="calls")

    def call(self, x, training=False):
        if training:
            self.calls.assign(self.calls + 1.0)
        self.add_loss(1e-2 * ops.mean(ops.square(self.scale)))
        return self.drop(x * self.scale + ops.sin(x), training=training)


class Gain(layers.Layer):
    def build(self, shape):
        self.gain = self.add_weight(shape=(shape[-1],), initializer="ones", name="gain")

    def compute_output_shape(self, shape):
        return shape

    def call(self, x):
        return ops.tanh(x * self.gain)


def own_activation(x):
    return x * ops.sigmoid(1.7 * x)


class OwnRegularizer(keras.regularizers.Regularizer):
    def __init__(self, factor):
        self.factor = factor

    def __call__(self, x):
        return self.factor * ops.sum(ops.abs(x) ** 1.5)

    def get_config(self):
        return {"factor": self.factor}


class Pair(layers.Layer):
    """Two inputs and two outputs."""

    def call(self, a, b):
        return ops.tanh(a + b), a * b


class LogCosh2(keras.losses.Loss):
    def call(self, y_true, y_pred):
        return ops.mean(ops.log(ops.cosh(2 * (y_true - y_pred))), axis=-1)


def own_loss(y_true, y_pred):
    return ops.mean(ops.square(y_true - y_pred) ** 1.5, axis=-1)


def mean_prediction(y_true, y_pred):
    return ops.mean(y_pred, axis=-1)


class WithoutConfig(keras.losses.Loss):
    """Its config does not say the power."""

    def __init__(self, power=1.0, **options):
        super().__init__(**options)
        self.power = power

    def call(self, y_true, y_pred):
        return ops.mean(ops.abs(y_true - y_pred) ** self.power, axis=-1)


class OwnReduction(keras.losses.Loss):
    def __call__(self, y_true, y_pred, sample_weight=None):
        return ops.mean(ops.abs(y_true - y_pred))


class Share(keras.metrics.Metric):
    """The share of predictions above a threshold."""

    def __init__(self, name="share", **options):
        super().__init__(name=name, **options)
        self.above = self.add_weight(name="above", initializer="zeros")
        self.fn = self.add_weight(name="count", initializer="zeros")  # As losses call a function.

    def update_state(self, y_true, y_pred, sample_weight=None):
        self.above.assign(self.above + ops.sum(ops.cast(y_pred > 0.1, "float32")))
        self.fn.assign(self.fn + ops.cast(ops.size(y_pred), "float32"))

    def result(self):
        return self.above / self.fn


class Largest(keras.metrics.Metric):
    """Its variable is no sum."""

    def __init__(self, name="largest", **options):
        super().__init__(name=name, **options)
        self.largest = self.add_weight(name="largest", initializer="zeros")

    def update_state(self, y_true, y_pred, sample_weight=None):
        self.largest.assign(ops.maximum(self.largest, ops.max(y_pred)))

    def result(self):
        return self.largest


@keras.saving.register_keras_serializable("tests")
class Classifier(keras.Model):
    """A subclassed model."""

    def __init__(self, units=8, **options):
        super().__init__(**options)
        self.units = units
        self.hidden = layers.Dense(units, activation="relu")
        self.normalize = layers.BatchNormalization()
        self.logits = layers.Dense(3, kernel_regularizer="l2")

    def call(self, x, training=False):
        return self.logits(self.normalize(self.hidden(x), training=training))

    def get_config(self):
        return {**super().get_config(), "units": self.units}


class LayersOnly(Classifier):
    """Has no statistics of batches, so workers compute what one process does."""

    def call(self, x):
        return self.logits(self.hidden(x))


class OwnLossModel(Classifier):
    """Computes its loss itself, and has a metric of its own."""

    def __init__(self, **options):
        super().__init__(**options)
        self.confidence = keras.metrics.Mean(name="confidence")

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        loss = ops.mean(keras.losses.sparse_categorical_crossentropy(y, y_pred, from_logits=True))
        self.confidence.update_state(ops.max(ops.softmax(y_pred), axis=-1))
        return loss + 0.01 * ops.mean(ops.square(y_pred))


class Autoencoder(keras.Model):
    """Trains without labels, and draws random numbers in its call."""

    def __init__(self, **options):
        super().__init__(**options)
        self.encode = layers.Dense(4)
        self.decode = layers.Dense(FEATURES)
        self.random = keras.random.SeedGenerator(1)

    def call(self, x):
        code = self.encode(x)
        return self.decode(code + 0.01 * keras.random.normal(ops.shape(code), seed=self.random))

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        return ops.mean(ops.square(x - y_pred))


class OwnStep(Classifier):
    def train_step(self, *arguments):
        return super().train_step(*arguments)


def compiled(model, loss="crossentropy", optimizer=None, **options):
    if loss == "crossentropy":
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    options.setdefault("metrics", ["accuracy"])
    model.compile(optimizer or keras.optimizers.Adam(0.01), loss, **options)
    return model


def functional(body, rate=None):
    def make():
        keras.utils.set_random_seed(5)
        inputs = keras.Input((FEATURES,))
        return compiled(keras.Model(inputs, layers.Dense(3)(body(inputs))))
    return make


def with_layer(x):
    return Scaled()(layers.Dense(8, activation="relu")(x))


OPERATIONS = {
    "add": lambda a, b: a + b, "subtract": lambda a, b: a - b, "multiply": lambda a, b: a * b,
    "maximum": ops.maximum, "minimum": ops.minimum, "negative": lambda a, b: -a + b,
    "number": lambda a, b: (2.0 - a) / 4 + 0.5 * b - 1,
    "concatenate": lambda a, b: ops.concatenate([a, b], axis=-1),
    "activations": lambda a, b: ops.relu(a) + ops.sigmoid(b) + ops.tanh(a) + ops.silu(b),
    "more activations": lambda a, b: ops.softplus(a) + ops.softsign(b) + ops.selu(a),
    "hard activations": lambda a, b: ops.hard_sigmoid(a) + ops.hard_silu(b) + ops.hard_tanh(a),
    "rest": lambda a, b: ops.log_sigmoid(a) + ops.relu6(b) + ops.softmax(a),
}


class PositionalEmbedding(layers.Layer):
    """Computes the mask of its inputs."""

    def __init__(self, **options):
        super().__init__(**options)
        self.tokens = layers.Embedding(9, 4, mask_zero=True)
        self.positions = layers.Embedding(6, 4)

    def call(self, x):
        return self.tokens(x) + self.positions(ops.arange(6))

    def compute_mask(self, x, mask=None):
        return self.tokens.compute_mask(x)


class Encoder(layers.Layer):
    """Uses a mask, and passes it on."""

    def __init__(self, **options):
        super().__init__(**options)
        self.supports_masking = True
        self.attention = layers.MultiHeadAttention(2, 2)

    def call(self, x, mask=None):
        return x + self.attention(x, x, attention_mask=mask[:, None, :])


def masked_text():
    keras.utils.set_random_seed(5)
    inputs = keras.Input((6,), dtype="int32")
    x = layers.GlobalAveragePooling1D()(Encoder()(PositionalEmbedding()(inputs)))
    return compiled(keras.Model(inputs, layers.Dense(3)(x)))


def with_operations(x):
    a = ops.tanh(x[:, 2:])
    return ops.concatenate([a * x[:, :-2], 2.0 - a], axis=-1)


def with_neighbours(x):
    """Calls that become one program, and one whose result others use."""
    used_twice = ops.tanh(Gain()(x))
    a = Gain()(used_twice * used_twice + ops.sin(used_twice))
    return layers.Concatenate()([a, layers.Dense(3)(used_twice)])


def with_shared_layer(x):
    shared = Gain(name="shared")
    x = shared(layers.Dense(FEATURES)(shared(x)))
    return layers.Add()([shared(x), shared(layers.Dense(FEATURES)(x))])


def with_two_outputs(x):
    first, second = Pair()(layers.Dense(4)(x), layers.Dense(4)(x))
    return layers.Concatenate()([first, second])


def with_inner_model(x):
    inputs = keras.Input((FEATURES,))
    inner = keras.Model(inputs, layers.Dense(4)(Scaled()(inputs)), name="inner")
    return layers.Concatenate()([inner(x), x])


def with_inner_model_behind_a_layer(x):
    inputs = keras.Input((FEATURES,))
    return keras.Model(inputs, Gain()(inputs))(layers.Dense(FEATURES)(x))


def with_layer_of_two_levels(x):
    shared = Gain(name="levels")
    inputs = keras.Input((FEATURES,))
    inner = keras.Model(inputs, layers.Dense(FEATURES)(ops.sin(shared(inputs))))
    return shared(inner(x))


def with_lora(x):
    adapted = layers.Dense(6)
    x = adapted(x)
    adapted.enable_lora(2)
    return x


def with_own_arguments(x):
    """Layers of Keras with functions and classes of the user's own."""
    x = layers.Dense(8, activation=own_activation, kernel_regularizer=OwnRegularizer(0.02))(x)
    x = layers.Reshape((4, 2))(x)
    x = layers.TimeDistributed(Gain())(x)
    return layers.Flatten()(layers.SimpleRNN(3, activation=own_activation)(x))


class OwnFunctional(keras.Model):
    """A functional model of another class."""


def with_inner_model_of_another_class(x):
    inputs = keras.Input((FEATURES,))
    return OwnFunctional(inputs, layers.Dense(4)(inputs), name="inner")(x)


def with_lambda_function(x):
    return layers.Lambda(lambda value: value * ops.sigmoid(value))(layers.Dense(8)(x))


def regression(loss, metrics, **options):
    def make():
        keras.utils.set_random_seed(6)
        model = keras.Sequential([keras.Input((FEATURES,)), layers.Dense(6, activation="tanh"),
                                  layers.Dense(2)])
        return compiled(model, loss, metrics=metrics(), **options)
    return make


def subclassed(kind=Classifier, **options):
    def make():
        keras.utils.set_random_seed(7)
        model = compiled(kind(name="own"), **options)  # Seeds depend on the name.
        model(np.zeros((2, FEATURES), "float32"))
        return model
    return make


class ProgramsTest(unittest.TestCase):

    def train(self, model, *arguments, **options):
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            return muster.fit(model, *arguments, **{**SIZES, **options})

    def compare(self, make, x, y, cluster=None, expected_options=None, **options):
        """Trains a model with Keras and with Muster. Returns Muster's."""
        expected_model, model = make(), make()
        expected = expected_model.fit(x, y, verbose=0, **{**SIZES, **options,
                                                          **(expected_options or {})})
        found = self.train(model, x, y, **options, **(cluster or {}))
        self.assertEqual(set(found.history), set(expected.history))
        for name, values in expected.history.items():
            # Rounding may decide about one example.
            slack = 1.01 / len(x) if "accuracy" in name else TOLERANCE
            np.testing.assert_allclose(found.history[name], values, atol=slack, rtol=TOLERANCE,
                                       err_msg=name)
        for variable, other in zip(model.weights, expected_model.weights):
            np.testing.assert_allclose(
                keras.ops.convert_to_numpy(variable), keras.ops.convert_to_numpy(other),
                atol=TOLERANCE, err_msg=variable.path)
        self.assertEqual(int(model.optimizer.iterations), int(expected_model.optimizer.iterations))
        return model

    def test_a_layer_of_the_users_own_trains_on_every_cluster(self):
        x, y = data()
        for cluster in ({}, {"workers": 2}, {"workers": 1, "ps": 2}):
            with self.subTest(cluster):
                model = self.compare(functional(with_layer), x, y, cluster,
                                     validation_data=(x[:50], y[:50]))
                # Each of the steps was applied once.
                self.assertEqual(float(model.layers[2].calls.value), 21)

    def test_functional_models_with_operations_and_unknown_layers(self):
        x, y = data()
        for body in (with_operations, with_neighbours, with_shared_layer, with_two_outputs,
                     with_inner_model, with_inner_model_behind_a_layer, with_layer_of_two_levels,
                     with_lora, with_own_arguments, with_inner_model_of_another_class):
            with self.subTest(body.__name__):
                self.compare(functional(body), x, y)

    def test_operations_that_muster_has_are_no_programs(self):
        x, y = data()
        for operation in OPERATIONS:
            with self.subTest(operation):
                body = OPERATIONS[operation]
                self.compare(functional(lambda x, body=body: body(
                    layers.Dense(6)(x), layers.Dense(6)(x))), x, y, {"backend": "native"})
        masked = keras.Input((4,), dtype="int32")
        embedded = layers.Embedding(5, 3, mask_zero=True)(masked)
        model = compiled(keras.Model(masked, layers.GlobalAveragePooling1D()(
            ops.multiply(embedded, 2.0))))
        with self.assertRaisesRegex(ValueError, "Muster does not know multiply"):
            muster.fit(model, np.ones((8, 4)), np.zeros(8), backend="native")

    def test_extents_that_a_model_leaves_open_are_those_of_the_data(self):
        def make():
            keras.utils.set_random_seed(8)
            inputs = keras.Input((None, FEATURES))
            steps = layers.GRU(4, return_sequences=True)(Gain()(inputs))
            return compiled(keras.Model(inputs, layers.Dense(3)(ops.mean(steps, axis=1))))

        x, y = data()
        self.compare(make, np.stack([x, x[::-1]], axis=1), y)

    def test_layers_of_the_users_own_pass_masks_on(self):
        generator = np.random.default_rng(1)
        x = generator.integers(1, 9, (200, 6)) * (np.arange(6) < generator.integers(2, 7, (200, 1)))
        self.compare(masked_text, x, x[:, 0] % 3, validation_data=(x[:50], x[:50, 0] % 3))
        self.compare(masked_text, x, x[:, 0] % 3, {"workers": 2})

    def test_losses_that_are_sums(self):
        x, y = data()
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction="sum")
        self.compare(subclassed(LayersOnly, loss=loss), x, y, {"workers": 2})
        make = regression(lambda a, b: ops.sum(ops.square(a - b)) / 100,
                          lambda: [lambda a, b: ops.mean(b, axis=-1)], optimizer="sgd")
        self.compare(make, x, x[:, :2], {"workers": 2})

    def test_losses_that_are_means_of_weights(self):
        x, y = data()
        weights = np.linspace(0.1, 2, len(x)).astype("float32")
        loss = keras.losses.MeanSquaredError(reduction="mean_with_sample_weight")
        self.compare(regression(loss, lambda: ["mae"], optimizer="sgd"), x, x[:, :2],
                     sample_weight=weights)
        self.compare(regression(loss, list, optimizer="sgd"), x, x[:, :2])

    def test_weights_of_examples_and_classes_of_subclassed_models(self):
        x, y = data()
        make = subclassed(LayersOnly)
        self.compare(make, x, y, class_weight={0: 1.0, 1: 5.0, 2: 0.3}, validation_split=0.25)
        weights = np.linspace(0.1, 2, len(x)).astype("float32")
        self.compare(make, x, y, {"workers": 2}, sample_weight=weights,
                     validation_data=(x[:50], y[:50]))

    def test_backends_agree(self):
        x, y = data()
        for body in (with_layer, lambda x: layers.Dense(8, "relu")(x)):
            self.compare(functional(body), x, y, {"backend": "program"},
                         validation_data=(x[:50], y[:50]))
        with self.assertRaisesRegex(ValueError, 'backend is "native", and Muster does not know '
                                                "scaled"):
            self.train(functional(with_layer)(), x, y, backend="native")
        with self.assertRaisesRegex(ValueError, "backend is 'gpu'; expected one of auto, native"):
            self.train(functional(with_layer)(), x, y, backend="gpu")

    def test_another_call_continues(self):
        def make():
            keras.utils.set_random_seed(9)
            return compiled(LayersOnly(name="own"))  # Its variables are created by fit().

        x, y = data()
        expected_model, model = make(), make()
        for first, last in ((0, 2), (2, 3)):
            options = {"batch_size": 32, "shuffle": False, "verbose": 0, "initial_epoch": first,
                       "epochs": last}
            expected = expected_model.fit(x, y, **options)
            found = muster.fit(model, x, y, **options)
            np.testing.assert_allclose(found.history["loss"], expected.history["loss"],
                                       atol=TOLERANCE)

    def test_a_written_job_trains_elsewhere(self):
        x, y = data()
        model, expected_model = functional(with_layer)(), functional(with_layer)()
        expected_model.fit(x, y, verbose=0, **SIZES)
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
            job = muster.write_job(model, x, y, folder=folder + "/job", **SIZES)
            subprocess.run([executables.find_launch(), f"--job={job}", "--workers=0", "--ps=0",
                            f"--run_dir={folder}/run"],
                           check=True, capture_output=True)
            muster.load_weights(model, folder + "/run/final_model.keras", job)
        for value, expected in zip(model.get_weights(), expected_model.get_weights()):
            np.testing.assert_allclose(value, expected, atol=TOLERANCE)

    def test_files_of_callbacks_are_those_of_the_users_model(self):
        x, y = data()
        model = functional(with_layer)()
        with tempfile.TemporaryDirectory() as folder:
            best, weights = folder + "/best.keras", folder + "/{epoch}.weights.h5"
            self.train(model, x, y, callbacks=[
                keras.callbacks.ModelCheckpoint(best),
                keras.callbacks.ModelCheckpoint(weights, save_weights_only=True)])
            loaded = keras.models.load_model(best, custom_objects={"Scaled": Scaled})
            other = functional(with_layer)()
            other.load_weights(weights.format(epoch=3))
        for one in (loaded, other):
            for value, expected in zip(one.get_weights(), model.get_weights()):
                np.testing.assert_array_equal(value, expected)

    @unittest.skipIf(keras.backend.backend() != "jax", "needs JAX")
    def test_neighbours_are_one_program(self):
        from muster.program_copy import converted
        from muster.programs import Program

        model = functional(with_neighbours)()
        with converted(model, [4], [4], [], []) as copy:
            names = [layer.name for layer in copy.layers if isinstance(layer, Program)]
        self.assertEqual(len(names), 2, names)  # The first Gain; sin, the sum and the second Gain.

    def test_losses_and_metrics_of_the_users_own(self):
        x, _ = data()
        y = np.stack([x[:, 0], x[:, 1] ** 2], 1)
        weights = np.linspace(0.1, 2, len(x)).astype("float32")
        for loss, metrics in ((own_loss, lambda: [mean_prediction, "mae"]),
                              (LogCosh2(), lambda: [Share()]),
                              ("mse", lambda: [mean_prediction])):
            with self.subTest(str(loss)):
                make = regression(loss, metrics)
                self.compare(make, x, y, validation_data=(x[:50], y[:50]))
                self.compare(make, x, y, {"workers": 2})
                self.compare(make, x, y, sample_weight=weights)
        make = regression(own_loss, list, weighted_metrics=[mean_prediction])
        self.compare(make, x, y, sample_weight=weights)

    def test_subclassed_models(self):
        x, y = data()
        for kind, options in ((Classifier, {}), (OwnLossModel, {"loss": None})):
            with self.subTest(kind.__name__):
                self.compare(subclassed(kind, **options), x, y,
                             validation_data=(x[:50], y[:50]))
                self.compare(subclassed(kind, **options), x, y, {"workers": 1, "ps": 1})

    def test_a_model_without_labels_learns_with_random_numbers(self):
        x, _ = data()
        histories = []
        for _ in range(2):
            model = subclassed(Autoencoder, loss=None, metrics=None)()
            histories.append(self.train(model, x, epochs=8, seed=3, workers=2).history["loss"])
        self.assertLess(histories[0][-1], histories[0][0] * 0.8)
        self.assertEqual(histories[0], histories[1])  # The seed repeats the numbers.

    def test_noise_differs_between_steps(self):
        keras.utils.set_random_seed(1)
        inputs = keras.Input((FEATURES,))
        model = compiled(keras.Model(inputs, layers.Dense(3)(Scaled(rate=0.5)(inputs))))
        x, y = data()
        history = self.train(model, x, y, epochs=10, batch_size=200, seed=4).history["loss"]
        self.assertEqual(len(set(np.diff(history) > 0)), 2, history)  # Goes up and down.

    def test_data_in_batches(self):
        x, y = (array[:192] for array in data())
        batches = [(x[begin:begin + 32], y[begin:begin + 32]) for begin in range(0, 192, 32)]

        def compare(make):
            expected_model, model = make(), make()
            expected = expected_model.fit(x, y, verbose=0, **SIZES)
            found = self.train(model, iter(batches * 3), batch_size=None, steps_per_epoch=6)
            np.testing.assert_allclose(found.history["loss"], expected.history["loss"],
                                       atol=TOLERANCE)

        compare(functional(with_layer))
        compare(subclassed())
        model = subclassed(Autoencoder, loss=None, metrics=None)()
        history = self.train(model, (batch for batch, _ in batches), batch_size=None,
                             steps_per_epoch=6, epochs=1)
        self.assertEqual(len(history.history["loss"]), 1)

    def test_what_cannot_be_exported_is_refused_by_name(self):
        x, y = data()
        with self.assertRaisesRegex(ValueError, r"OwnStep overrides train_step\(\)"):
            self.train(subclassed(OwnStep)(), x, y)
        y2 = np.stack([x[:, 0], x[:, 1]], 1)
        with self.assertRaisesRegex(ValueError, "metric largest: the variables are no sums"):
            self.train(regression("mse", lambda: [Largest()])(), x, y2)
        with self.assertRaisesRegex(ValueError, r"loss own_reduction overrides __call__\(\)"):
            self.train(regression(OwnReduction(), list)(), x, y2)
        if keras.backend.backend() != "jax":  # Another process rebuilds the loss.
            with self.assertRaisesRegex(ValueError, "power is 3.0, but 1.0 in a copy"):
                self.train(regression(WithoutConfig(3.0), list)(), x, y2)

    @unittest.skipIf(keras.backend.backend() == "tensorflow", "needs a function that can be saved")
    def test_lambda_layers(self):
        x, y = data()
        self.compare(functional(with_lambda_function), x, y)


if __name__ == "__main__":
    if not os.environ.get("MUSTER_PJRT_PLUGIN"):
        print("MUSTER_PJRT_PLUGIN names no PJRT plugin: the test is skipped.")
        raise SystemExit(0)
    unittest.main()
