"""Layers that take inputs of every rank, or of two dimensions.

A function (draw, x) returns a layer that may be called on x, or a function of x. It may raise a
ValueError; then another one is drawn.
"""

import keras
import numpy as np

L = keras.layers


def dense(draw, x):
    return L.Dense(draw.integer(1, 5), activation=draw.activation(), **draw.weights("kernel"))


def einsum_dense(draw, x):
    return L.EinsumDense("...x,xy->...y", draw.integer(1, 4), bias_axes=draw.of(None, "y"),
                         activation=draw.activation(), **draw.weights("kernel", bias=False))


def spectral_dense(draw, x):
    return L.SpectralNormalization(L.Dense(draw.integer(2, 4), activation=draw.activation()),
                                   power_iterations=draw.integer(1, 2))


def activation(draw, x):
    return L.Activation(draw.activation())


def rectifier(draw, x):
    return draw.of(
        lambda: L.ReLU(**draw.some({"max_value": lambda: draw.number(1, 6),
                                    "negative_slope": lambda: draw.number(0, 0.5),
                                    "threshold": lambda: draw.number(0, 0.5)})),
        lambda: L.LeakyReLU(negative_slope=draw.number(0.05, 0.5)),
        lambda: L.ELU(alpha=draw.number(0.2, 1.5)),
    )()


def prelu(draw, x):
    axes = [axis for axis in range(1, len(x.shape) - 1) if draw.chance(0.5)]
    # Muster has no alpha_regularizer.
    return L.PReLU(alpha_initializer=draw.vector_initializer(), shared_axes=axes or None)


def softmax(draw, x):
    axis = draw.of(len(x.shape) - 1, draw.integer(1, len(x.shape) - 1))
    if x.shape[axis] == 1:
        raise ValueError("the output would be constant")
    return L.Softmax(axis=axis)


def _scale_and_center(draw):
    return draw.some({
        "center": lambda: False, "scale": lambda: False,
        "beta_initializer": draw.vector_initializer,
        "gamma_initializer": lambda: keras.initializers.RandomNormal(1.0, 0.3),
        "beta_regularizer": draw.regularizer, "gamma_regularizer": draw.regularizer,
    }, 0.2)


def batch_normalization(draw, x):
    return L.BatchNormalization(
        momentum=draw.number(0.5, 0.99), epsilon=draw.of(1e-3, 0.01),
        synchronized=draw.chance(0.7), **_scale_and_center(draw),
        **draw.some({"moving_mean_initializer": lambda: keras.initializers.Constant(0.25),
                     "trainable": lambda: False}, 0.15))


def layer_normalization(draw, x):
    axes = [axis for axis in range(1, len(x.shape)) if draw.chance(0.5)]
    return L.LayerNormalization(axis=axes or -1, epsilon=draw.of(1e-3, 0.01),
                                **_scale_and_center(draw))


def group_normalization(draw, x):
    return L.GroupNormalization(draw.of(1, -1, 2), epsilon=0.01, **_scale_and_center(draw))


def rms_normalization(draw, x):
    return L.RMSNormalization(axis=draw.of(-1, draw.integer(1, len(x.shape) - 1)),
                              epsilon=draw.of(1e-3, 0.01))


def unit_normalization(draw, x):
    return L.UnitNormalization(axis=draw.of(-1, draw.integer(1, len(x.shape) - 1)))


def normalization(draw, x):
    size = x.shape[-1]
    return L.Normalization(mean=draw.normal(size).tolist(),
                           variance=(draw.normal(size)**2 + 0.5).tolist(),
                           invert=draw.chance(0.2))


def rescaling(draw, x):
    return L.Rescaling(draw.number(0.2, 2), draw.number(-0.5, 0.5))


def noise_of_no_size(draw, x):
    """Regularization that draws random numbers, at rates where they have no effect."""
    return draw.of(L.Dropout, L.GaussianNoise, L.GaussianDropout, L.AlphaDropout)(0.0)


def activity(draw, x):
    # Keras' penalty is 0 if the input consists of integers.
    if x.dtype != "float32":
        raise ValueError("not of integers")
    return L.ActivityRegularization(l1=draw.number(0, 0.02), l2=draw.number(0, 0.02))


def identity(draw, x):
    return L.Identity()


def arithmetic(draw, x):
    if draw.has_masks:
        raise ValueError("Muster passes on the mask of x; Keras drops it")
    a, b = draw.number(0.5, 2), draw.number(-1, 1)
    return draw.of(lambda y: y * a + b, lambda y: b - y, lambda y: (a * y - b) / 1.5)


def permute(draw, x):
    return L.Permute(tuple(int(i) + 1 for i in draw.rng.permutation(len(x.shape) - 1)))


def reshape(draw, x):
    """Reshapes to another rank."""
    size = int(np.prod(x.shape[1:]))
    shape = []
    while len(shape) < draw.integer(0, 3):
        factors = [f for f in range(2, 7) if size % f == 0]
        if not factors:
            break
        shape.append(draw.of(*factors))
        size //= shape[-1]
    shape = [*shape, size]
    if draw.chance(0.3):
        shape[draw.integer(0, len(shape) - 1)] = -1
    return L.Reshape(shape)


def repeat_vector(draw, x):
    return L.RepeatVector(draw.integer(2, 4))


ANY_RANK = (
    dense, dense, einsum_dense, spectral_dense, activation, rectifier, prelu, softmax,
    batch_normalization, layer_normalization, group_normalization, rms_normalization,
    unit_normalization, normalization, rescaling, noise_of_no_size, activity,
    identity, arithmetic, permute, reshape,
)
RANK_2 = (dense, dense, repeat_vector, reshape)
