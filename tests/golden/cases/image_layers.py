"""image_layers.json: layers for images and normalization, forward and backward.

See layers.json. Inputs are x, the weights by the last part of their Keras paths, and a
cotangent. Outputs are y, grad_x and grad_<weight>. Random layers have factors that allow
only one result, and are called in training mode.
"""

import keras
import numpy as np

from cases.golden_format import normal, seeded
from cases.layers import _run


def cases():
    yield from _layer_normalization(seeded(410))
    yield from _leaky(seeded(411))
    yield from _rescaling(seeded(412))
    yield from _resizing(seeded(413))
    yield from _random(seeded(414))


def _layer_normalization(rng):
    for name, shape, options in (
        ("default", (4, 6), {}),
        ("rank_3", (2, 3, 4), {"epsilon": 1e-5}),
        ("axes", (2, 3, 4), {"axis": [1, 2]}),
        ("inner_axis", (2, 3, 4), {"axis": 1}),
        ("no_center", (3, 5), {"center": False}),
        ("no_scale", (3, 5), {"scale": False}),
    ):
        layer = keras.layers.LayerNormalization(**options)
        layer.build(shape)
        weights = {w.name: normal(rng, *w.shape) for w in layer.weights}
        config = {"axis": -1, "epsilon": 1e-3, "center": True, "scale": True, **options}
        yield _run(
            f"LayerNormalization.{name}",
            {"class_name": "LayerNormalization", **config},
            layer,
            3 * normal(rng, *shape) + 1,
            weights,
            rng,
        )


def _leaky(rng):
    for slope in (0.3, 0.0, 1.5):
        yield _run(
            f"LeakyReLU.{slope}",
            {"class_name": "LeakyReLU", "negative_slope": slope},
            keras.layers.LeakyReLU(negative_slope=slope),
            normal(rng, 3, 4),
            {},
            rng,
        )
    for axes in ([], [1, 2]):
        layer = keras.layers.PReLU(shared_axes=axes or None)
        layer.build((2, 3, 2, 2))
        yield _run(
            f"PReLU.{len(axes)}_shared",
            {"class_name": "PReLU", "shared_axes": axes},
            layer,
            normal(rng, 2, 3, 2, 2),
            {"alpha": normal(rng, *layer.alpha.shape)},
            rng,
        )


def _rescaling(rng):
    channels = normal(seeded(415), 2, 2, 2, 3)
    for name, x, scale, offset in (
        ("floats", normal(rng, 2, 3), 2.5, -1.0),
        ("bytes", rng.integers(0, 256, (2, 2, 2, 3)).astype(np.uint8), 1 / 127.5, -1.0),
        ("scale_only", rng.integers(0, 256, (2, 3)).astype(np.uint8), 1 / 255, 0.0),
        ("channels", channels, [2.5, -0.5, 1 / 3], [1.0, 0.0, -2.0]),
        ("channel_scales", channels, [2.5, -0.5, 1 / 3], 0.5),
        ("channel_offsets", channels, 0.5, [1.0, 0.0, -2.0]),
    ):
        yield _run(
            f"Rescaling.{name}",
            {"class_name": "Rescaling", "scale": scale, "offset": offset},
            keras.layers.Rescaling(scale, offset),
            x,
            {},
            rng,
        )


def _resizing(rng):
    floats = normal(rng, 1, 5, 7, 2)
    pixels = rng.integers(0, 256, (1, 6, 5, 3)).astype(np.uint8)
    pixel = np.zeros((1, 1, 1, 1), np.float32)
    for name, x, height, width, options in (
        ("up", floats, 9, 11, {}),
        ("down", floats, 3, 2, {}),
        ("mixed", floats, 8, 4, {}),
        ("same", floats, 5, 7, {}),
        ("one", floats, 1, 1, {}),
        ("nearest_up", floats, 9, 11, {"interpolation": "nearest"}),
        ("nearest_down", floats, 3, 2, {"interpolation": "nearest"}),
        ("bytes", pixels, 4, 9, {}),
        ("nearest_bytes", pixels, 4, 9, {"interpolation": "nearest"}),
        ("cropped", floats, 4, 4, {"crop_to_aspect_ratio": True}),
        ("cropped_tall", floats, 9, 3, {"crop_to_aspect_ratio": True}),
        ("padded", floats, 4, 4, {"pad_to_aspect_ratio": True, "fill_value": 0.5}),
        ("padded_wide", floats, 3, 9, {"pad_to_aspect_ratio": True}),
        ("padded_odd", floats, 6, 7, {"pad_to_aspect_ratio": True, "fill_value": -5.0}),
        ("padded_by_one", pixel, 2, 1, {"pad_to_aspect_ratio": True, "fill_value": -5.0}),
        ("padded_by_three", pixel, 1, 4, {"pad_to_aspect_ratio": True, "fill_value": -5.0}),
    ):
        config = {
            "interpolation": "bilinear",
            "crop_to_aspect_ratio": False,
            "pad_to_aspect_ratio": False,
            "fill_value": 0.0,
            **options,
        }
        yield _run(
            f"Resizing.{name}",
            {"class_name": "Resizing", "height": height, "width": width, **config},
            keras.layers.Resizing(height, width, **config),
            x,
            {},
            rng,
        )


def _random(rng):
    for mode in ("constant", "nearest", "reflect", "wrap"):
        for interpolation in ("bilinear", "nearest"):
            options = {"fill_mode": mode, "interpolation": interpolation, "fill_value": 0.25}
            factor = -0.07 if mode == "wrap" else 0.17
            yield _for_training(
                f"RandomRotation.{mode}.{interpolation}",
                {"class_name": "RandomRotation", "factor": [factor, factor], **options},
                keras.layers.RandomRotation((factor, factor), **options),
                normal(rng, 2, 4, 5, 1),
                rng,
            )
            height, width = (0.9, 0.35) if mode == "reflect" else (0.4, -0.3)
            yield _for_training(
                f"RandomZoom.{mode}.{interpolation}",
                {
                    "class_name": "RandomZoom",
                    "height_factor": [height, height],
                    "width_factor": [width, width],
                    **options,
                },
                keras.layers.RandomZoom((height, height), (width, width), **options),
                normal(rng, 2, 4, 5, 1),
                rng,
            )


def _for_training(name, config, layer, x, rng):
    one = _run(name, config, lambda_layer(layer), x, {}, rng)
    # TensorFlow's gradient is a projection, not the gradient of its forward
    # pass.
    del one["outputs"]["grad_x"]
    return one


def lambda_layer(layer):
    class Training(keras.layers.Layer):
        def call(self, x):
            return layer(x, training=True)

    return Training()
