"""Compares muster.fit() with Keras' fit() for optimizers and constraints of the user's own.

MUSTER_KERAS_PYTHON names a Python with Keras, JAX and a PJRT plugin.
"""

import contextlib
import io
import os
import unittest

from test_models import FEATURES, data, keras, np

import muster

TOLERANCE = 2e-5
SIZES = {"batch_size": 32, "epochs": 3, "shuffle": False}  # 200 rows: the last batch has 8.

layers, ops = keras.layers, keras.ops


class Bounded(keras.optimizers.Optimizer):
    """Computes each element separately."""

    def __init__(self, learning_rate=0.02, beta=0.9, name="bounded", **options):
        super().__init__(learning_rate=learning_rate, name=name, **options)
        self.beta = beta

    def build(self, variables):
        if self.built:
            return
        super().build(variables)
        self.momentums = self.add_optimizer_variables(variables, "momentum")

    def update_step(self, gradient, variable, learning_rate):
        momentum = self.momentums[self._get_variable_index(variable)]
        self.assign(momentum, self.beta * momentum + (1 - self.beta) * gradient)
        corrected = momentum / (1 - self.beta ** ops.cast(self.iterations + 1, "float32"))
        self.assign_sub(variable, learning_rate * corrected / (ops.abs(corrected) + 0.1))

    def get_config(self):
        return {**super().get_config(), "beta": self.beta}


class LayerWise(Bounded):
    """Needs norms of whole variables, and starts a slot as a copy of the variable."""

    def build(self, variables):
        if self.built:
            return
        super().build(variables)
        self.starts = self.add_optimizer_variables(variables, "start")
        for start, variable in zip(self.starts, variables):
            start.assign(variable + 0.0)

    def update_step(self, gradient, variable, learning_rate):
        index = self._get_variable_index(variable)
        ratio = (ops.norm(ops.reshape(variable, (-1,))) + 0.1) / (
            ops.norm(ops.reshape(gradient, (-1,))) + 0.1)
        self.assign(self.momentums[index], self.beta * self.momentums[index] + ratio * gradient)
        self.assign(self.starts[index], 0.9 * self.starts[index] + 0.1 * variable)
        self.assign_sub(variable, learning_rate * (
            self.momentums[index] + 0.01 * (variable - self.starts[index])))


class Counting(Bounded):
    """Has state that all variables share."""

    def build(self, variables):
        if self.built:
            return
        super().build(variables)
        self.count = self.add_variable((), name="count")

    def update_step(self, gradient, variable, learning_rate):
        self.assign_add(self.count, 1.0)
        super().update_step(gradient, variable, learning_rate)


class RowWise(Bounded):
    """Has a slot of another shape than the variable."""

    def build(self, variables):
        if self.built:
            return
        super().build(variables)
        self.rows = [self.add_variable(variable.shape[:1], name="rows") for variable in variables]

    def update_step(self, gradient, variable, learning_rate):
        rows = self.rows[self._get_variable_index(variable)]
        self.assign(rows, rows + ops.sum(ops.reshape(gradient, (gradient.shape[0], -1)), axis=1))
        self.assign_sub(variable, learning_rate * gradient)


class Centred(keras.constraints.Constraint):
    """Needs the whole variable."""

    def __init__(self, shift=0.0):
        self.shift = shift

    def __call__(self, w):
        return w - ops.mean(w) + self.shift

    def get_config(self):
        return {"shift": self.shift}


class Limited(layers.Layer):
    """Has constraints of Keras and of the user's own."""

    def build(self, shape):
        width = shape[-1]
        self.scale = self.add_weight(shape=(width,), initializer="ones", name="scale",
                                     constraint=keras.constraints.NonNeg())
        self.kernel = self.add_weight(shape=(width, width), name="kernel",
                                      constraint=keras.constraints.MaxNorm(0.5, axis=[0]))
        self.bias = self.add_weight(shape=(width,), initializer="zeros", name="bias",
                                    constraint=Centred())

    def call(self, x):
        return ops.tanh(x @ self.kernel) * self.scale + self.bias


def limited(optimizer):
    keras.utils.set_random_seed(3)
    model = keras.Sequential([keras.Input((FEATURES,)), Limited(),
                              layers.Dense(8, kernel_constraint=Centred(0.1)), layers.Dense(3)])
    model.compile(optimizer, keras.losses.SparseCategoricalCrossentropy(from_logits=True),
                  metrics=["accuracy"])
    return model


class Warmup(keras.optimizers.schedules.LearningRateSchedule):
    """The rate rises, and falls with the root of the step."""

    def __init__(self, rate=0.1, steps=5):
        super().__init__()
        self.rate, self.steps = rate, steps

    def __call__(self, step):
        step = ops.cast(step, "float32") + 1
        return self.rate * ops.minimum(step / self.steps, ops.sqrt(self.steps / step))

    def get_config(self):
        return {"rate": self.rate, "steps": self.steps}


def excluding(names):
    optimizer = keras.optimizers.AdamW(0.02, weight_decay=0.5)
    optimizer.exclude_from_weight_decay(var_names=names)
    return optimizer


def classifier(optimizer):
    keras.utils.set_random_seed(3)
    model = keras.Sequential([keras.Input((FEATURES,)), layers.Dense(40, activation="tanh"),
                              layers.Dense(30, activation="relu"), layers.Dense(3)])
    model.compile(optimizer, keras.losses.SparseCategoricalCrossentropy(from_logits=True),
                  metrics=["accuracy"])
    # TensorFlow does not run what build() assigns when fit() calls it.
    model.optimizer.build(model.trainable_variables)
    return model


class Subclassed(keras.Model):
    def __init__(self, **options):
        super().__init__(**options)
        self.hidden, self.top = layers.Dense(8, activation="tanh"), layers.Dense(3)

    def call(self, x):
        return self.top(self.hidden(x))


def subclassed(optimizer):
    keras.utils.set_random_seed(3)
    model = Subclassed(name="own")
    model.compile(optimizer, keras.losses.SparseCategoricalCrossentropy(from_logits=True),
                  metrics=["accuracy"])
    model(np.zeros((2, FEATURES), "float32"))
    return model


class ProgramOptimizerTest(unittest.TestCase):

    def train(self, model, *arguments, **options):
        with contextlib.redirect_stdout(io.StringIO()):
            return muster.fit(model, *arguments, **{**SIZES, **options})

    def assert_same(self, model, expected):
        pairs = zip([*model.weights, *model.optimizer.variables],
                    [*expected.weights, *expected.optimizer.variables])
        for variable, other in pairs:
            np.testing.assert_allclose(
                keras.ops.convert_to_numpy(variable), keras.ops.convert_to_numpy(other),
                atol=TOLERANCE, rtol=TOLERANCE, err_msg=variable.path)

    def compare(self, make_optimizer, cluster=None, make=classifier, times=1):
        x, y = data()
        expected, model = make(make_optimizer()), make(make_optimizer())
        for _ in range(times):
            history = expected.fit(x, y, verbose=0, **SIZES)
            found = self.train(model, x, y, **(cluster or {}))
            np.testing.assert_allclose(found.history["loss"], history.history["loss"],
                                       atol=TOLERANCE, rtol=TOLERANCE)
        self.assert_same(model, expected)

    def test_every_cluster_trains_as_keras(self):
        for kind in (Bounded, LayerWise):
            for cluster in ({}, {"workers": 2}, {"workers": 1, "ps": 2}):
                with self.subTest(kind.__name__, cluster=cluster):
                    self.compare(kind, cluster)

    def test_the_state_goes_on_in_the_next_fit(self):
        self.compare(Bounded, times=2)
        self.compare(LayerWise, {"workers": 1, "ps": 1}, times=2)

    def test_options_of_all_optimizers(self):
        schedule = keras.optimizers.schedules.ExponentialDecay(0.05, 5, 0.5)
        for name, make in (
                ("weight decay", lambda: Bounded(weight_decay=0.1)),
                ("averages", lambda: Bounded(use_ema=True, ema_momentum=0.9)),
                ("accumulation", lambda: Bounded(gradient_accumulation_steps=2)),
                ("clipping", lambda: LayerWise(global_clipnorm=0.5)),
                ("schedule", lambda: Bounded(schedule)),
                ("scale", lambda: keras.optimizers.LossScaleOptimizer(Bounded()))):
            with self.subTest(name):
                self.compare(make)

    @unittest.skipIf(keras.backend.backend() == "tensorflow",
                     "another process rebuilds the optimizer from its config")
    def test_variables_without_weight_decay(self):
        for names in (["bias"], ["kernel"]):
            with self.subTest(names):
                self.compare(lambda names=names: excluding(names))

    def test_subclassed_models(self):
        self.compare(Bounded, make=subclassed)

    def test_schedules(self):
        for make in (lambda: keras.optimizers.Adam(Warmup()), lambda: Bounded(Warmup(0.2)),
                     lambda: keras.optimizers.SGD(Warmup(), gradient_accumulation_steps=2),
                     lambda: keras.optimizers.LossScaleOptimizer(keras.optimizers.Adam(Warmup()))):
            self.compare(make)
        self.compare(lambda: keras.optimizers.Adam(Warmup()), {"workers": 1, "ps": 1}, times=2)

    def test_constraints(self):
        for make_optimizer in (lambda: keras.optimizers.Adam(0.05), Bounded):
            for cluster in ({"workers": 2}, {"workers": 1, "ps": 2}):
                with self.subTest(cluster=cluster):
                    self.compare(make_optimizer, cluster, limited)

    def test_two_workers_on_servers_learn(self):
        x, y = data()
        model = classifier(Bounded())
        history = self.train(model, x, y, workers=2, ps=2, epochs=8)
        self.assertLess(history.history["loss"][-1], 0.95 * history.history["loss"][0])
        self.assertEqual(int(model.optimizer.iterations), 8 * 7)

    def test_what_cannot_be_exported_is_refused_by_name(self):
        x, y = data()
        for optimizer, message in (
                (Counting(), "Counting changes .*count with the gradients of several variables"),
                (RowWise(), r"RowWise keeps .* and shape \(8,\) for .*expected float32 and the "
                            r"shape of the variable, \(8, 40\)"),
                (Bounded(lambda: 0.1), "the learning rate <lambda> is a function")):
            with self.subTest(type(optimizer).__name__):
                with self.assertRaisesRegex(ValueError, message):
                    self.train(classifier(optimizer), x, y)


if __name__ == "__main__":
    if not os.environ.get("MUSTER_PJRT_PLUGIN"):
        print("MUSTER_PJRT_PLUGIN names no PJRT plugin: the test is skipped.")
        raise SystemExit(0)
    unittest.main()
