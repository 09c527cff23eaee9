"""image_functions.json: what image augmentation computes from given draws.

config:  function, the name in common/learn/nn/image/color.h, and its options; or layer,
         a layer whose draws include a sign.
inputs:  x, and what is drawn, by its name there.
outputs: y; or plus and minus, the results for both signs.
"""

import keras
import numpy as np
import tensorflow as tf

from cases.golden_format import case, normal, seeded, uniform

L = keras.layers
BYTES = (0, 255)
UNIT = (0, 1)


def cases():
    yield from _colors(seeded(460))
    yield from _shapes(seeded(461))
    yield from _shears(seeded(462))
    yield from _equalizations(seeded(463))
    yield from _perspectives(seeded(464))
    yield from _mixtures(seeded(465))
    yield from _tiles(seeded(466))
    yield from _elastic_transforms(seeded(467))


def _images(rng, value_range, count=3):
    return (uniform(rng, count, 4, 5, 3) * value_range[1]).astype(np.float32)


def _case(function, layer, x, drawn, transformation, **options):
    y = layer.transform_images(x, transformation, training=True)
    return case(function, {"function": function, **options}, {"x": x, **drawn},
                {"y": np.asarray(y, np.float32)})


def _column(*numbers):
    return np.array(numbers, np.float32).reshape(-1, 1, 1, 1)


def _colors(rng):
    for value_range in (BYTES, UNIT):
        top = float(value_range[1])
        options = {"value_range": [float(n) for n in value_range]}
        delta = _column(0.4, -0.5, 0.0) * top
        yield _case("AdjustBrightness", L.RandomBrightness(1.0, value_range),
                    _images(rng, value_range), {"delta": delta}, {"rgb_delta": delta}, **options)
        factor = _column(1.5, 0.25, 1.0)
        yield _case("AdjustContrast", L.RandomContrast(1.0, value_range),
                    _images(rng, value_range), {"factor": factor}, {"contrast_factor": factor},
                    **options)
        factor = _column(0.3, 1.0, -0.5)
        yield _case("DegenerateColor", L.RandomColorDegeneration(1.0, value_range),
                    _images(rng, value_range), {"factor": factor}, {"factor": factor}, **options)
        bits = _column(1, 4, 8)
        yield _case("Posterize", L.RandomPosterization(8, value_range),
                    _images(rng, value_range), {"bits": bits},
                    {"shift_factor": (8 - bits.reshape(-1)).astype(np.uint8)}, **options)
        addition, threshold = _column(30, 0, 100), _column(100, 0, 200)
        yield _case("Solarize", L.Solarization(1.0, 1.0, value_range),
                    _images(rng, value_range), {"addition": addition, "threshold": threshold},
                    {"additions": addition, "thresholds": threshold}, **options)
        factor = _column(0.5, 2.0, 0.0)
        yield _case("AdjustSaturation", L.RandomSaturation(1.0, value_range),
                    _with_grays(_images(rng, value_range)), {"factor": factor},
                    {"factor": factor.reshape(-1)}, **options)
        delta = _column(0.4, -0.3, 0.0)
        yield _case("AdjustHue", L.RandomHue(1.0, value_range),
                    _with_grays(_images(rng, value_range)), {"delta": delta},
                    {"factor": delta.reshape(-1)}, **options)
        factor = _column(0.5, 1.5, 2.0)
        yield _case("Sharpen", L.RandomSharpness(1.0, value_range),
                    _images(rng, value_range), {"factor": factor},
                    {"factor": factor.reshape(-1) / 2}, **options)
        flat = _images(rng, value_range)
        flat[1, ..., 0] = 0.25
        flat[2] = 0
        yield _case("StretchContrast", L.AutoContrast(value_range), flat, {}, None, **options)


def _with_grays(images):
    images[0, 0] = images[0, 0, :, :1]
    images[1, 0] = 0
    return images


def _shapes(rng):
    for size, sigma in (((3, 3), (0.5, 0.5)), ((3, 5), (0.8, 0.3)), ((1, 7), (1.0, 2.0))):
        # Wide enough that the clipped values do not matter.
        layer = L.RandomGaussianBlur(kernel_size=size, value_range=(-99, 99))
        sigma = np.array(sigma, np.float32)
        yield _case("GaussianBlur", layer, normal(rng, 2, 5, 6, 3), {"sigma": sigma},
                    {"blur_factor": sigma, "should_apply_blur": np.array([True, True])},
                    kernel_size=list(size))
    x = normal(rng, 3, 4, 5, 3)
    left, right = np.array([[1.5, 0.0, 2.0], [3.0, 5.0, 4.0]], np.float32)
    top, bottom = np.array([[0.0, 0.5, 1.0], [2.5, 4.0, 3.0]], np.float32)
    layer = L.RandomErasing()
    masks = layer._generate_batch_mask(x.shape, (left, right, top, bottom))
    fill = normal(rng, *x.shape)
    corners = {"left": left, "right": right, "top": top, "bottom": bottom}
    yield _case("Erase", layer, x,
                {"fill": fill, **{name: _column(*v) for name, v in corners.items()}},
                {"batch_masks": masks, "apply_erasing": np.array([True] * 3), "fill_value": fill})


def _equalizations(rng):
    for value_range in (BYTES, UNIT, (-1, 1)):
        for bins in (256, 8):
            x = _images(rng, value_range)
            x[..., 1] = x[..., 1] ** 2 / value_range[1]
            x[..., 2] = 0.25
            layer = L.Equalization(value_range, bins=bins)
            yield _case("Equalize", layer, x, {}, None, bins=bins,
                        value_range=[float(n) for n in value_range])


def _perspectives(rng):
    for interpolation in ("bilinear", "nearest"):
        layer = L.RandomPerspective(interpolation=interpolation, fill_value=-1.0)
        x = normal(rng, 5, 4, 6, 2)
        corners = np.array([[0, 0], [5, 0], [0, 3], [5, 3]], np.float32)
        start = np.repeat(corners[None], 5, axis=0)
        moved = uniform(rng, 5, 4, 2, low=-0.5, high=0.5).astype(np.float32)
        moved[0] = 0
        drawn = {"right": moved[:, 1, 0], "bottom": moved[:, 2, 1], "last_x": moved[:, 3, 0],
                 "last_y": moved[:, 3, 1]}
        y = layer.transform_images(
            x,
            {"apply_perspective": np.array([True] * 5), "start_points": start,
             "end_points": start + start * moved},
        )
        yield case("ChangePerspective", {"function": "ChangePerspective",
                                         "interpolation": interpolation, "fill_value": -1.0},
                   {"x": x, **{name: _column(*value) for name, value in drawn.items()}},
                   {"y": np.asarray(y, np.float32)})


def _mixtures(rng):
    order = np.array([2, 0, 1, 3], np.int32)
    labels = uniform(rng, 4, 3).astype(np.float32)
    x = _images(rng, BYTES, count=4)
    weight = np.array([0.25, 1.0, 0.0, 0.7], np.float32)
    drawn = {"mix_weight": weight, "permutation_order": order}
    inputs = {"weight": _column(*weight), "order": order}
    yield _case("Blend", L.MixUp(), x, inputs, drawn)
    yield _labels_case(L.MixUp(), labels, weight, order, drawn)

    layer = L.CutMix()
    x = _images(rng, BYTES, count=4)
    left, right = np.array([[1.5, 0.0, 2.0, 1.0], [3.0, 5.0, 4.0, 1.0]], np.float32)
    top, bottom = np.array([[0.0, 0.0, 1.0, 0.5], [2.5, 4.0, 3.0, 0.5]], np.float32)
    masks, weight = layer._generate_batch_mask(x.shape, (left, right, top, bottom))
    box = {"left": left, "right": right, "top": top, "bottom": bottom}
    box = {name: _column(*value) for name, value in box.items()}
    drawn = {"mix_weight": weight, "permutation_order": order, "batch_masks": masks}
    yield _case("PasteBox", layer, x, {"order": order, **box}, drawn)
    yield case("ShareOutside", {"function": "ShareOutside"}, {"x": x, **box},
               {"y": np.asarray(weight, np.float32)})
    yield _labels_case(layer, labels, np.asarray(weight), order, drawn)


def _labels_case(layer, labels, weight, order, drawn):
    y = layer.transform_labels(labels, drawn)
    return case("Blend.labels", {"function": "Blend"},
                {"x": labels, "weight": weight.reshape(-1, 1).astype(np.float32), "order": order},
                {"y": np.asarray(y, np.float32)})


def _tiles(rng):
    layer_class = L.ContrastLimitedAdaptiveHistogramEqualization
    for value_range, clip_limit, grid, shape in (
        (BYTES, 4.0, (2, 3), (2, 8, 9, 3)),
        (BYTES, 0.0, (2, 2), (1, 7, 9, 2)),
        (UNIT, 1.5, (3, 2), (2, 7, 9, 1)),
        (UNIT, 40.0, (1, 1), (2, 5, 4, 1)),
    ):
        x = (uniform(rng, *shape) ** 2 * value_range[1]).astype(np.float32)
        x[0, :3] = 0.25
        layer = layer_class(value_range, clip_limit, grid)
        yield case("TileEqualization",
                   {"function": "TileEqualization", "clip_limit": clip_limit,
                    "tile_grid_size": list(grid),
                    "value_range": [float(n) for n in value_range]},
                   {"x": x}, {"y": np.asarray(layer(x))})


def _elastic_transforms(rng):
    # If the scale is less than 1, Keras blurs over less than the largest radius.
    for scale in (1.0, 0.5):
        yield _elastic_transform(rng, (1, 41, 44, 1), scale, "bilinear", "constant")
    for interpolation in ("bilinear", "nearest"):
        for fill_mode in ("constant", "nearest", "reflect", "wrap"):
            yield _elastic_transform(rng, (1, 21, 26, 2), 1.0, interpolation, fill_mode)


def _elastic_transform(rng, shape, scale, interpolation, fill_mode):
    seed = 11
    x = uniform(rng, *shape).astype(np.float32)
    height, width = shape[1:3]
    y = keras.ops.image.elastic_transform(
        x, alpha=max(height, width) * np.float32(0.1 * scale),
        sigma=min(height, width) * np.float32(0.05 * scale), interpolation=interpolation,
        fill_mode=fill_mode, fill_value=-1.0, seed=seed)
    # The noise that Keras draws for both axes.
    noise = tf.random.stateless_normal(shape[:3], [seed, 0])
    return case(f"ElasticTransform.{interpolation}.{fill_mode}.{scale}",
                {"function": "ElasticTransform", "interpolation": interpolation,
                 "fill_mode": fill_mode, "fill_value": -1.0},
                {"x": x, "noise": noise.numpy(), "scale": np.array([scale], np.float32)},
                {"y": np.asarray(y)})


def _shears(rng):
    for x_factor, y_factor in ((0.5, 0.0), (0.0, 0.75), (0.25, 0.5)):
        layer = L.RandomShear((x_factor, x_factor), (y_factor, y_factor), fill_mode="constant",
                              fill_value=-1.0)
        x = normal(rng, 8, 4, 5, 2)
        factors = np.array([[x_factor, y_factor]] * 8, np.float32)
        signs = {
            name: np.asarray(layer.transform_images(x, {"shear_factor": sign * factors}))
            for name, sign in (("plus", 1), ("minus", -1))
        }
        yield case(f"RandomShear.{x_factor}.{y_factor}",
                   {"layer": "RandomShear", "x_factor": x_factor, "y_factor": y_factor},
                   {"x": x}, signs)
