"""Random choices for a model, all of them from one seed."""

import keras
import numpy as np

ACTIVATIONS = (
    "linear", "relu", "relu6", "sigmoid", "tanh", "softplus", "softsign", "softmax",
    "log_softmax", "gelu", "elu", "selu", "silu", "leaky_relu", "hard_sigmoid", "exponential",
    "mish", "celu", "hard_silu", "hard_tanh", "hard_shrink", "soft_shrink", "tanh_shrink",
    "log_sigmoid", "squareplus", "sparse_plus", "sparse_sigmoid",
)


class Draw:
    def __init__(self, *seed):
        self.rng = np.random.default_rng(seed)
        # True once the model has a layer that masks.
        self.has_masks = False

    def of(self, *options):
        return options[self.rng.integers(len(options))]

    def chance(self, probability):
        return bool(self.rng.random() < probability)

    def integer(self, low, high):
        """Returns an integer in [low, high]."""
        return int(self.rng.integers(low, high + 1))

    def integers(self, count, low, high):
        return tuple(self.integer(low, high) for _ in range(count))

    def number(self, low, high):
        return round(float(self.rng.uniform(low, high)), 3)

    def some(self, arguments, probability=0.35):
        """Returns each of these arguments with this probability; the values are functions."""
        return {name: value() for name, value in arguments.items() if self.chance(probability)}

    def activation(self):
        return self.of("linear", "tanh", *ACTIVATIONS)

    def initializer(self):
        kinds = keras.initializers
        return self.of(
            lambda: "glorot_uniform", lambda: "glorot_normal", lambda: "he_normal",
            lambda: "he_uniform", lambda: "lecun_normal", lambda: "lecun_uniform",
            lambda: kinds.RandomNormal(0.0, self.number(0.1, 0.6), seed=self.integer(0, 99)),
            lambda: kinds.RandomUniform(-0.5, self.number(0.1, 0.6)),
            lambda: kinds.TruncatedNormal(0.1, self.number(0.1, 0.6)),
            lambda: kinds.VarianceScaling(
                self.number(0.5, 2), self.of("fan_in", "fan_out", "fan_avg"),
                self.of("truncated_normal", "untruncated_normal", "uniform")),
        )()

    def vector_initializer(self):
        kinds = keras.initializers
        return self.of(
            lambda: "zeros", lambda: "ones", lambda: kinds.Constant(self.number(-0.5, 0.5)),
            lambda: kinds.RandomNormal(0.2, 0.3), lambda: "random_uniform",
        )()

    def regularizer(self):
        kinds = keras.regularizers
        return self.of(
            lambda: "l1", lambda: "l2",
            lambda: kinds.L1(self.number(0.001, 0.05)),
            lambda: kinds.L2(self.number(0.001, 0.05)),
            lambda: kinds.L1L2(self.number(0.001, 0.05), self.number(0.001, 0.05)),
        )()

    def weights(self, *kernels, bias=True):
        """Returns arguments for kernels of these names and for the bias."""
        arguments = {}
        for kernel in kernels:
            arguments |= self.some({
                f"{kernel}_initializer": self.initializer,
                f"{kernel}_regularizer": self.regularizer,
            }, 0.25)
        if bias:
            arguments |= self.some({
                "use_bias": lambda: False,
                "bias_initializer": self.vector_initializer,
                "bias_regularizer": self.regularizer,
            }, 0.2)
        return arguments

    def normal(self, *shape):
        """Returns standard normal values with three decimals."""
        return self.rng.normal(size=shape).round(3).astype(np.float32)
