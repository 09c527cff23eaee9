"""layers.json: layers, forward and backward.

inputs:  x; the layer's weights by their Keras names (kernel, bias, embeddings, mean,
         variance); cotangent, of y's shape; for an adapted Normalization also data.
outputs: y; grad_x and grad_<weight>, the gradients of sum(y * cotangent); for an
         adapted Normalization the mean and variance of the data.
"""

import keras
import numpy as np
import tensorflow as tf

from cases.golden_format import argument, case, normal, seeded, uniform

ACTIVATIONS = (
    "relu",
    "relu6",
    "sigmoid",
    "tanh",
    "softplus",
    "gelu",
    "gelu_approximate",
    "softmax",
    "log_softmax",
    "elu",
    "linear",
    "selu",
    "silu",
    "leaky_relu",
    "hard_sigmoid",
    "softsign",
    "exponential",
)


def cases():
    yield from _dense(seeded(400))
    yield from _activation(seeded(401))
    yield from _flatten(seeded(402))
    yield from _embedding(seeded(403))
    yield from _normalization(seeded(404))
    yield from _activation(seeded(405), MORE_ACTIVATIONS)


# These have separate cases, so that the older ones do not change.
MORE_ACTIVATIONS = (
    "mish",
    "celu",
    "hard_silu",
    "hard_tanh",
    "hard_shrink",
    "soft_shrink",
    "tanh_shrink",
    "log_sigmoid",
    "squareplus",
    "sparse_plus",
    "sparse_sigmoid",
)


def _dense(rng):
    for name in ACTIVATIONS:
        yield _run(
            f"Dense.{name}",
            {"class_name": "Dense", "units": 3, "use_bias": True, **_named(name)},
            keras.layers.Dense(3, activation=_function(name)),
            # Wide enough to reach the upper limit of relu6.
            3 * normal(rng, 5, 4),
            {"kernel": normal(rng, 4, 3), "bias": normal(rng, 3)},
            rng,
        )
    yield _run(
        "Dense.no_bias",
        {"class_name": "Dense", "units": 3, "use_bias": False, "activation": "linear"},
        keras.layers.Dense(3, use_bias=False),
        normal(rng, 5, 4),
        {"kernel": normal(rng, 4, 3)},
        rng,
    )
    yield _run(
        "Dense.rank_3",
        {"class_name": "Dense", "units": 3, "use_bias": True, "activation": "tanh"},
        keras.layers.Dense(3, activation="tanh"),
        normal(rng, 2, 3, 4),
        {"kernel": normal(rng, 4, 3), "bias": normal(rng, 3)},
        rng,
    )


def _activation(rng, names=ACTIVATIONS):
    # Zero and other kinks, and large values, for which exponentials overflow.
    x = np.float32([[-40, -6, -2.5, -0.5, 0, 0.25], [1, 2.5, 3, 6, 7.5, 40]])
    for name in names:
        yield _run(
            f"Activation.{name}",
            {"class_name": "Activation", **_named(name)},
            keras.layers.Activation(_function(name)),
            # Keras' gradient of celu at 0 is 2, which is the gradient of neither side.
            x + 0.125 if name == "celu" else x,
            {},
            rng,
        )


def _flatten(rng):
    for shape in ((2, 3, 2, 2), (4, 3), (4,)):
        yield _run(
            f"Flatten.rank_{len(shape)}",
            {"class_name": "Flatten"},
            keras.layers.Flatten(),
            normal(rng, *shape),
            {},
            rng,
        )


def _embedding(rng):
    # Repeated ids, whose gradients must be summed.
    for name, ids in (
        ("rank_1", np.int32([4, 0, 4, 5])),
        ("rank_2", np.int32([[1, 3, 1], [0, 1, 5]])),
    ):
        yield _run(
            f"Embedding.{name}",
            {"class_name": "Embedding", "input_dim": 6, "output_dim": 3},
            keras.layers.Embedding(6, 3),
            ids,
            {"embeddings": normal(rng, 6, 3)},
            rng,
        )


def _normalization(rng):
    mean, variance = normal(rng, 3), uniform(rng, 3, low=0.2, high=3.0)
    for invert in (False, True):
        yield _run(
            "Normalization.given" + ".invert" * invert,
            {"class_name": "Normalization", "axis": -1, "invert": invert},
            keras.layers.Normalization(mean=mean, variance=variance, invert=invert),
            normal(rng, 4, 3),
            {"mean": mean, "variance": variance},
            rng,
            set_weights=False,
        )
    for axis in (-1, None):
        data = 2 * normal(rng, 16, 3) + 1
        # A constant feature: its variance is zero, and a division by it must be
        # avoided.
        data[:, 1] = 0.5
        layer = keras.layers.Normalization(axis=axis)
        layer.adapt(data)
        one = _run(
            f"Normalization.adapted.axis_{axis}",
            {"class_name": "Normalization", "axis": axis, "invert": False},
            layer,
            normal(rng, 4, 3),
            {},
            rng,
        )
        one["inputs"]["data"] = data
        one["outputs"]["mean"] = layer.mean.numpy()
        one["outputs"]["variance"] = layer.variance.numpy()
        yield one


def _named(activation):
    """Returns Keras' arguments for a name in ACTIVATIONS."""
    if activation.startswith("gelu"):
        return {"activation": "gelu", "approximate": activation == "gelu_approximate"}
    return {"activation": activation}


def _function(activation):
    if activation == "gelu_approximate":
        return lambda x: keras.activations.gelu(x, approximate=True)
    return keras.activations.get(activation)


def _run(name, config, layer, x, weights, rng, set_weights=True):
    x_tensor = tf.constant(x)
    sources = {"x": x_tensor} if x_tensor.dtype.is_floating else {}
    if not layer.built:
        layer.build(x.shape)
    if set_weights and weights:
        layer.set_weights(list(weights.values()))

    with tf.GradientTape() as tape:
        tape.watch(sources)
        y = layer(x_tensor)
        cotangent = normal(rng, *y.shape)
        total = tf.reduce_sum(y * cotangent)
    sources |= {weight.name: weight.value for weight in layer.trainable_variables}
    gradients = tape.gradient(total, sources)

    return case(
        name,
        argument(config),
        {"x": x, **weights, "cotangent": cotangent},
        {
            "y": y.numpy(),
            **{f"grad_{key}": tf.convert_to_tensor(g).numpy() for key, g in gradients.items()},
        },
    )
