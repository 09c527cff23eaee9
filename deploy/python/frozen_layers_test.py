"""Layers that train inside of frozen ones, against Keras' fit().

MUSTER_KERAS_PYTHON names a Python with Keras, JAX and a PJRT plugin.
"""

import os
import unittest

from test_models import keras, np

import muster

layers = keras.layers


class Outer(layers.Layer):
    """A layer of the user's own, of two layers."""

    def __init__(self, **options):
        super().__init__(**options)
        self.first, self.second = layers.Dense(8, "tanh"), layers.Dense(8)

    def build(self, shape):
        self.first.build(shape)
        self.second.build((None, 8))

    def call(self, x):
        return self.second(self.first(x))


def own_layer():
    outer = Outer()
    inputs = keras.Input((4,))
    model = keras.Model(inputs, layers.Dense(1)(outer(inputs)))
    return model, outer, outer.second


def inner_model():
    inner = keras.Sequential([keras.Input((4,)), layers.Dense(8, "tanh"), layers.Dense(8)])
    return keras.Sequential([keras.Input((4,)), inner, layers.Dense(1)]), inner, inner.layers[-1]


def wrapper():
    outer = layers.TimeDistributed(layers.Dense(8))
    model = keras.Sequential([keras.Input((4,)), layers.Reshape((2, 2)), outer, layers.Flatten(),
                              layers.Dense(1)])
    return model, outer, outer.layer


def frozen(make):
    keras.utils.set_random_seed(1)
    model, outer, inner = make()
    outer.trainable = False
    inner.trainable = True
    model.compile("sgd", "mse")
    return model


class FrozenLayersTest(unittest.TestCase):

    def test_layers_that_train_inside_of_frozen_ones(self):
        x = np.random.default_rng(1).normal(size=(64, 4)).astype("float32")
        options = {"batch_size": 16, "epochs": 2, "shuffle": False, "verbose": 0}
        for make in (own_layer, inner_model, wrapper):
            with self.subTest(make.__name__):
                expected, model = frozen(make), frozen(make)
                expected.fit(x, x[:, :1], **options)
                muster.fit(model, x, x[:, :1], **options)
                for one, other in zip(model.get_weights(), expected.get_weights()):
                    np.testing.assert_allclose(one, other, atol=1e-5)


if __name__ == "__main__":
    if not os.environ.get("MUSTER_PJRT_PLUGIN"):
        print("MUSTER_PJRT_PLUGIN names no PJRT plugin: the test is skipped.")
        raise SystemExit(0)
    unittest.main()
