"""Convolution, pooling, padding and resampling in one, two and three dimensions.

The functions have the form that layers_of_any_rank.py describes.
"""

import keras

L = keras.layers


def _rank(x):
    return len(x.shape) - 2


def _kind(name, x):
    return getattr(L, f"{name}{_rank(x)}D")


def _window(draw, x, high=3):
    return draw.of(draw.integer(1, high), draw.integers(_rank(x), 1, high))


def _steps(draw, x, transposed=False):
    """Draws strides or dilation; only one of them may differ from 1."""
    if draw.chance(0.5):
        return {}
    if draw.chance(0.6) or transposed:
        return {"strides": draw.of(2, draw.integers(_rank(x), 1, 2))}
    return {"dilation_rate": draw.of(2, draw.integers(_rank(x), 1, 2))}


def convolution(draw, x):
    groups = draw.of(1, 1, 2)
    # Muster has no padding "causal".
    return _kind("Conv", x)(
        groups * draw.integer(1, 3), _window(draw, x), padding=draw.of("valid", "same"),
        groups=groups, activation=draw.activation(), **_steps(draw, x), **draw.weights("kernel"))


def transposed_convolution(draw, x):
    return L.__dict__[f"Conv{_rank(x)}DTranspose"](
        draw.integer(1, 3), _window(draw, x), padding=draw.of("valid", "same"),
        activation=draw.activation(), **_steps(draw, x, True), **draw.weights("kernel"))


def depthwise_convolution(draw, x):
    steps = _steps(draw, x)
    if "strides" in steps:
        steps = {"strides": 2}
    return _kind("DepthwiseConv", x)(
        _window(draw, x), padding=draw.of("valid", "same"), depth_multiplier=draw.integer(1, 2),
        activation=draw.activation(), **steps, **draw.weights("depthwise"))


def separable_convolution(draw, x):
    steps = _steps(draw, x)
    if "strides" in steps:
        steps = {"strides": 2}
    return _kind("SeparableConv", x)(
        draw.integer(1, 3), _window(draw, x), padding=draw.of("valid", "same"),
        depth_multiplier=draw.integer(1, 2), activation=draw.activation(), **steps,
        **draw.weights("depthwise", "pointwise"))


def spectral_convolution(draw, x):
    return L.SpectralNormalization(_kind("Conv", x)(draw.integer(1, 3), _window(draw, x, 2)))


def pooling(draw, x):
    kind = _kind(draw.of("MaxPooling", "AveragePooling"), x)
    return kind(_window(draw, x), strides=draw.of(None, 1, 2), padding=draw.of("valid", "same"))


def adaptive_pooling(draw, x):
    kind = _kind(draw.of("AdaptiveMaxPooling", "AdaptiveAveragePooling"), x)
    # If several maxima are equal, Keras gives each of them the whole gradient, Muster only one.
    if "Max" in kind.__name__ and not isinstance(x._keras_history.operation, L.InputLayer):
        raise ValueError("not of layers, whose outputs may be equal")
    return kind(tuple(draw.integer(1, size) for size in x.shape[1:-1]))


def global_pooling(draw, x):
    kind = _kind(draw.of("GlobalMaxPooling", "GlobalAveragePooling"), x)
    return kind(keepdims=draw.chance(0.4))


def up_sampling(draw, x):
    kind = _kind("UpSampling", x)
    if _rank(x) == 1:
        return kind(draw.integer(1, 2))
    # Muster has no interpolation "bilinear".
    return kind(draw.of(2, draw.integers(_rank(x), 1, 2)))


def _pairs(draw, x):
    return tuple(draw.integers(2, 0, 1) for _ in range(_rank(x)))


def zero_padding(draw, x):
    pairs = _pairs(draw, x)
    return _kind("ZeroPadding", x)(draw.of(1, pairs if _rank(x) > 1 else pairs[0]))


def cropping(draw, x):
    pairs = _pairs(draw, x)
    return _kind("Cropping", x)(pairs if _rank(x) > 1 else pairs[0])


def resizing(draw, x):
    return L.Resizing(*draw.integers(2, 2, 4), interpolation=draw.of("bilinear", "nearest"),
                      crop_to_aspect_ratio=draw.chance(0.3))


def center_crop(draw, x):
    return L.CenterCrop(*(draw.integer(1, size) for size in x.shape[1:3]))


def spatial_dropout(draw, x):
    return _kind("SpatialDropout", x)(0.0)


def over_time(draw, x):
    """Applies a layer to each step of the second dimension."""
    inner = [
        lambda: L.Dense(draw.integer(1, 3), activation=draw.activation()),
        lambda: L.LayerNormalization(epsilon=0.01),
        lambda: L.BatchNormalization(synchronized=True),
        lambda: L.Flatten(),
    ]
    if _rank(x) > 1:
        inner += [
            lambda: getattr(L, f"Conv{_rank(x) - 1}D")(2, 2, padding="same"),
            lambda: getattr(L, f"GlobalAveragePooling{_rank(x) - 1}D")(),
        ]
    return L.TimeDistributed(draw.of(*inner)())


def convolutional_lstm(draw, x):
    kind = L.__dict__[f"ConvLSTM{_rank(x) - 1}D"]
    return kind(draw.integer(1, 2), draw.integer(1, 2), padding=draw.of("valid", "same"),
                return_sequences=draw.chance(0.5), go_backwards=draw.chance(0.2),
                activation=draw.of("tanh", "softsign"), **draw.weights("kernel", "recurrent"))


SPACE = (
    convolution, convolution, transposed_convolution, depthwise_convolution,
    separable_convolution, spectral_convolution, pooling, pooling, adaptive_pooling,
    global_pooling, up_sampling, zero_padding, cropping, spatial_dropout, over_time,
)
IMAGES = (resizing, center_crop, convolutional_lstm)
VOLUMES = (convolutional_lstm,)
WITHOUT_3D = (depthwise_convolution, separable_convolution)
