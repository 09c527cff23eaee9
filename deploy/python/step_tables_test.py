"""Embeddings of models whose step is a program, against Keras' fit().

MUSTER_KERAS_PYTHON names a Python with Keras, JAX and a PJRT plugin.
"""

import contextlib
import io
import os
import unittest

from test_models import keras, np

import muster

TOLERANCE = 2e-5
SIZES = {"batch_size": 32, "epochs": 3, "shuffle": False}  # 200 rows: the last batch has 8.
ROWS = 200

layers, ops = keras.layers, keras.ops


class Recommender(keras.Model):
    """Looks tables up by inputs and by numbers that it computes; one table twice."""

    def __init__(self, **options):
        super().__init__(**options)
        self.users, self.items = layers.Embedding(50, 4), layers.Embedding(30, 4)
        self.top = layers.Dense(1)

    def call(self, inputs):
        neighbour = self.users((inputs["user"] * 7 + 1) % 50)
        both = [self.users(inputs["user"]), self.items(inputs["item"]), neighbour]
        return self.top(ops.concatenate(both, axis=-1))


class Tied(Recommender):
    """Uses the table of items, and not only rows of it."""

    def call(self, inputs):
        x = self.users(inputs["user"]) * self.items(inputs["item"])
        return self.top(x + ops.mean(self.items.embeddings, axis=0))


class Learned(Recommender):
    """The number of a row depends on a weight."""

    def call(self, inputs):
        user = self.users(inputs["user"])
        row = ops.cast(10 * ops.abs(ops.tanh(self.top(user)[:, 0])), "int32")
        return self.top(user * self.items(row))


class Masked(Recommender):
    """Computes masks from the numbers of rows."""

    def __init__(self, **options):
        super().__init__(**options)
        self.words = layers.Embedding(9, 4, mask_zero=True)
        self.mean = layers.GlobalAveragePooling1D()

    def call(self, inputs):
        return self.top(self.mean(self.words(inputs["words"])) * self.users(inputs["user"]))


def data():
    generator = np.random.default_rng(1)
    x = {"user": generator.integers(0, 50, ROWS).astype("int32"),
         "item": generator.integers(0, 30, ROWS).astype("int32"),
         "words": generator.integers(0, 9, (ROWS, 5)).astype("int32")}
    return x, ((x["user"] + x["item"]) % 7).astype("float32")[:, None]


def compiled(kind, optimizer):
    keras.utils.set_random_seed(7)
    model = kind(name="own")
    model.compile(optimizer, "mse", metrics=["mae"])
    model({name: value[:2] for name, value in data()[0].items()})
    return model


def tables_outside(kind):
    """Returns how many tables the copy for the cluster looks up outside of the program."""
    from muster import step_program

    types = {name: (value.shape[1:], "int32") for name, value in data()[0].items()}
    with step_program.copy_of(compiled(kind, "sgd"), (types, ((1,), "float32"), None),
                              [32, 8], [32]) as copy:
        return sum(isinstance(layer, layers.Embedding) for layer in copy.layers)


class StepTablesTest(unittest.TestCase):

    def compare(self, kind, make_optimizer, cluster):
        x, y = data()
        expected, model = compiled(kind, make_optimizer()), compiled(kind, make_optimizer())
        history = expected.fit(x, y, verbose=0, **SIZES)
        with contextlib.redirect_stdout(io.StringIO()):
            found = muster.fit(model, x, y, **SIZES, **cluster)
        for name, values in history.history.items():
            np.testing.assert_allclose(found.history[name], values, atol=TOLERANCE,
                                       rtol=TOLERANCE, err_msg=name)
        for variable, other in zip([*model.weights, *model.optimizer.variables],
                                   [*expected.weights, *expected.optimizer.variables]):
            np.testing.assert_allclose(
                keras.ops.convert_to_numpy(variable), keras.ops.convert_to_numpy(other),
                atol=TOLERANCE, err_msg=variable.path)

    def test_every_cluster_trains_as_keras(self):
        # With these optimizers, rows without gradient stay as they are in Keras, too.
        for make_optimizer in (lambda: keras.optimizers.Adagrad(0.1),
                               lambda: keras.optimizers.SGD(0.05)):
            for cluster in ({}, {"workers": 2}, {"workers": 1, "ps": 2}):
                with self.subTest(cluster=cluster):
                    self.compare(Recommender, make_optimizer, cluster)

    def test_rows_without_gradient_move_as_in_keras(self):
        for cluster in ({}, {"workers": 2}, {"workers": 1, "ps": 1,
                                             "embedding_updates": "all_rows"}):
            with self.subTest(cluster=cluster):
                self.compare(Recommender, lambda: keras.optimizers.Adam(0.01), cluster)
        with self.assertRaises(AssertionError):
            self.compare(Recommender, lambda: keras.optimizers.Adam(0.01),
                         {"embedding_updates": "rows_of_batch"})

    def test_tables_that_cannot_be_looked_up_outside(self):
        for kind in (Tied, Learned, Masked):
            with self.subTest(kind.__name__):
                self.compare(kind, lambda: keras.optimizers.Adagrad(0.05), {"workers": 1, "ps": 1})

    def test_which_tables_are_looked_up_outside(self):
        self.assertEqual([tables_outside(kind) for kind in (Recommender, Tied, Learned, Masked)],
                         [2, 1, 1, 2])


if __name__ == "__main__":
    if not os.environ.get("MUSTER_PJRT_PLUGIN"):
        print("MUSTER_PJRT_PLUGIN names no PJRT plugin: the test is skipped.")
        raise SystemExit(0)
    unittest.main()
