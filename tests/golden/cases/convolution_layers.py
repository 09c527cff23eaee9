"""convolution_layers.json: layers of image models, forward and backward.

See layers.json. Inputs are x (x0, x1, ... if a layer merges several), the weights by the
last part of their Keras paths, and a cotangent. Outputs are y, grad_x (grad_x0, ...) and
grad_<weight>. Layers are called in training mode; for BatchNormalization the outputs
include after_moving_mean and after_moving_variance.
"""

import keras
import numpy as np
import tensorflow as tf

from cases.golden_format import case, normal, seeded, uniform

L = keras.layers


def cases():
    yield from _conv(seeded(430))
    yield from _depthwise(seeded(431))
    yield from _batch_normalization(seeded(432))
    yield from _pooling(seeded(433))
    yield from _elementwise(seeded(434))
    yield from _merge(seeded(435))


def _conv(rng):
    for name, shape, options in (
        ("valid", (2, 5, 6, 3), {"filters": 4, "kernel_size": 3}),
        (
            "same_even",
            (1, 6, 4, 2),
            {
                "filters": 3, "kernel_size": [3, 2], "strides": 2, "padding": "same",
            },
        ),
        (
            "same_odd",
            (1, 5, 7, 2),
            {
                "filters": 3, "kernel_size": 3, "strides": [2, 3], "padding": "same",
            },
        ),
        (
            "dilated",
            (1, 7, 6, 2),
            {
                "filters": 2, "kernel_size": 2, "dilation_rate": [3, 2], "activation": "tanh",
            },
        ),
        ("groups", (1, 4, 4, 4), {"filters": 6, "kernel_size": 3, "groups": 2, "padding": "same"}),
        ("pointwise", (2, 3, 2, 5), {"filters": 2, "kernel_size": 1, "use_bias": False}),
    ):
        yield _run(f"Conv2D.{name}", L.Conv2D, options, [normal(rng, *shape)], rng)
    for name, shape, options in (
        ("valid", (2, 7, 3), {"filters": 4, "kernel_size": 3}),
        ("same", (2, 6, 2), {"filters": 3, "kernel_size": 4, "strides": 2, "padding": "same"}),
        (
            "dilated",
            (1, 8, 2),
            {
                "filters": 2, "kernel_size": 3, "dilation_rate": 2, "use_bias": False,
            },
        ),
        ("groups", (1, 5, 4), {"filters": 4, "kernel_size": 2, "groups": 2, "activation": "relu"}),
    ):
        yield _run(f"Conv1D.{name}", L.Conv1D, options, [normal(rng, *shape)], rng)


def _depthwise(rng):
    for name, shape, options in (
        ("same", (2, 4, 5, 3), {"kernel_size": 3, "padding": "same", "use_bias": False}),
        ("stride", (1, 7, 6, 2), {"kernel_size": 3, "strides": 2}),
        (
            "multiplier",
            (1, 4, 4, 2),
            {
                "kernel_size": 2, "depth_multiplier": 3, "activation": "relu",
            },
        ),
        ("dilated", (1, 6, 6, 2), {"kernel_size": 2, "dilation_rate": 2, "padding": "same"}),
    ):
        yield _run(
            f"DepthwiseConv2D.{name}", L.DepthwiseConv2D, options, [normal(rng, *shape)], rng
        )
    for name, shape, options in (
        ("valid", (1, 5, 5, 2), {"filters": 3, "kernel_size": 3}),
        (
            "same",
            (2, 4, 6, 2),
            {
                "filters": 2, "kernel_size": 3, "strides": 2, "padding": "same",
                "depth_multiplier": 2, "use_bias": False,
            },
        ),
    ):
        yield _run(
            f"SeparableConv2D.{name}", L.SeparableConv2D, options, [normal(rng, *shape)], rng
        )


def _batch_normalization(rng):
    for name, shape, options in (
        ("images", (2, 3, 2, 3), {}),
        ("features", (5, 4), {"momentum": 0.9, "epsilon": 1e-5}),
        ("no_center", (4, 3), {"center": False}),
        ("no_scale", (4, 3), {"scale": False}),
        ("frozen", (2, 2, 2, 3), {"trainable": False}),
    ):
        # Far from zero, to reveal a variance computed as the difference of
        # squares.
        x = 2 * normal(rng, *shape) + 30
        yield _run(f"BatchNormalization.{name}", L.BatchNormalization, options, [x], rng)


def _pooling(rng):
    for kind in (L.MaxPooling2D, L.AveragePooling2D):
        for name, shape, options in (
            ("pairs", (2, 4, 6, 3), {"pool_size": 2}),
            ("odd", (1, 5, 5, 2), {"pool_size": 2}),
            ("same", (1, 5, 6, 2), {"pool_size": 3, "strides": 2, "padding": "same"}),
            ("overlapping", (1, 5, 4, 2), {"pool_size": [3, 2], "strides": 1}),
        ):
            yield _run(f"{kind.__name__}.{name}", kind, options, [normal(rng, *shape)], rng)
    for kind in (L.GlobalMaxPooling2D, L.GlobalAveragePooling2D):
        for keepdims in (False, True):
            yield _run(
                f"{kind.__name__}.{keepdims}",
                kind,
                {"keepdims": keepdims},
                [normal(rng, 2, 3, 4, 3)],
                rng,
            )


def _elementwise(rng):
    # At the kinks, and on both sides of them.
    x = np.float32([[-8, -2, -0.5, 0, 0.5, 1], [1.5, 2, 3, 6, 6.5, 9]])
    for name, options in (
        ("default", {}),
        ("six", {"max_value": 6.0}),
        ("max", {"max_value": 2.5}),
        ("slope", {"negative_slope": 0.25}),
        ("threshold", {"threshold": 1.0}),
        ("all", {"max_value": 4.0, "negative_slope": 0.5, "threshold": 0.75}),
    ):
        yield _run(f"ReLU.{name}", L.ReLU, options, [x], rng)
    for name, padding in (("one", 1), ("two", [1, 2]), ("four", [[0, 1], [2, 3]])):
        yield _run(
            f"ZeroPadding2D.{name}",
            L.ZeroPadding2D,
            {"padding": padding},
            [normal(rng, 2, 2, 3, 2)],
            rng,
        )
    for name, shape, target in (
        ("split", (2, 6), [3, 2]),
        ("inferred", (2, 3, 4), [-1, 6]),
        ("flat", (2, 3, 2), [6]),
    ):
        yield _run(
            f"Reshape.{name}", L.Reshape, {"target_shape": target}, [normal(rng, *shape)], rng
        )
    for name, shape, dims in (("swap", (2, 3, 4), [2, 1]), ("turn", (2, 2, 3, 4), [3, 1, 2])):
        yield _run(f"Permute.{name}", L.Permute, {"dims": dims}, [normal(rng, *shape)], rng)


def _merge(rng):
    for kind in (L.Add, L.Subtract, L.Multiply, L.Average, L.Maximum, L.Minimum):
        count = 2 if kind is L.Subtract else 3
        xs = [normal(rng, 2, 3) for _ in range(count)]
        yield _run(kind.__name__, kind, {}, xs, rng)
    yield _run("Add.broadcast", L.Add, {}, [normal(rng, 2, 3, 2), normal(rng, 2, 1, 2)], rng)
    yield _run("Concatenate", L.Concatenate, {}, [normal(rng, 2, 3), normal(rng, 2, 1)], rng)
    yield _run(
        "Concatenate.axis_1",
        L.Concatenate,
        {"axis": 1},
        [normal(rng, 2, 1, 2), normal(rng, 2, 2, 2)],
        rng,
    )


def _run(name, kind, options, xs, rng):
    layer = kind(**options)
    shapes = [x.shape for x in xs]
    layer.build(shapes[0] if len(xs) == 1 else shapes)
    weights = {}
    for variable in layer.weights:
        is_variance = variable.name == "moving_variance"
        shape = variable.shape
        weights[variable.name] = (
            uniform(rng, *shape, low=0.5, high=2.0) if is_variance else normal(rng, *shape)
        )
        variable.assign(weights[variable.name])

    x_names = ["x"] if len(xs) == 1 else [f"x{i}" for i in range(len(xs))]
    tensors = {x_name: tf.constant(x) for x_name, x in zip(x_names, xs)}
    with tf.GradientTape() as tape:
        tape.watch(tensors)
        values = list(tensors.values())
        argument = values[0] if len(values) == 1 else values
        # Layers without weights do not accept `training`.
        y = layer(argument, training=True) if weights else layer(argument)
        cotangent = normal(rng, *y.shape)
        total = tf.reduce_sum(y * cotangent)
    sources = tensors | {v.name: v.value for v in layer.trainable_variables}
    gradients = tape.gradient(total, sources)
    after = {
        f"after_{v.name}": v.numpy() for v in layer.weights if v.name.startswith("moving_")
    }
    return case(
        name,
        {"class_name": kind.__name__, **options},
        {**dict(zip(x_names, xs)), **weights, "cotangent": cotangent},
        {
            "y": y.numpy(),
            **{f"grad_{key}": tf.convert_to_tensor(g).numpy() for key, g in gradients.items()},
            **after,
        },
    )
