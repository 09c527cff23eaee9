"""Saves models of keras.applications for Muster to load.

    python write_application_models.py FOLDER

Writes NAME.keras, with random weights, for each model in MODELS, and models.json. That file has a
case for each model, with its input_shape and the logits of two images. The images are drawn as in
cases/applications.py, from 0 to 255.
"""

import os
import pathlib
import re
import sys
import unittest.mock

os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""
os.environ["KERAS_BACKEND"] = "tensorflow"

import keras
import numpy as np

from cases.golden_format import case, file_text
from cases.mobilenet_v2 import drawn

# The smallest images that each model accepts.
MODELS = {
    "DenseNet121": (32, 32, 3),
    "EfficientNetB0": (32, 32, 3),
    "InceptionV3": (75, 75, 3),
    "MobileNet": (32, 32, 3),
    "MobileNetV2": (32, 32, 3),
    "MobileNetV3Large": (32, 32, 3),
    "MobileNetV3Small": (32, 32, 3),
    "ResNet50": (32, 32, 3),
    "VGG16": (32, 32, 3),
    "Xception": (71, 71, 3),
}
# This model has one layer more than with random weights: a Rescaling for each channel.
PRETRAINED = "EfficientNetB0_pretrained"


def main():
    folder = pathlib.Path(sys.argv[1])
    cases = []
    for name, shape in {**MODELS, PRETRAINED: (32, 32, 3)}.items():
        keras.utils.clear_session()
        keras.utils.set_random_seed(1)
        model = _model(name, shape)
        _draw_weights(model)
        images = 127.5 + 127.5 * drawn(1000, 2 * np.prod(shape)).astype(np.float32)
        logits = _scaled_logits(model, images.reshape(2, *shape))
        model.save(folder / f"{name}.keras")
        cases.append(case(name, {"input_shape": list(shape)}, {}, {"logits": logits}))
    (folder / "models.json").write_text(file_text(cases))


def _model(name, shape):
    if name != PRETRAINED:
        return getattr(keras.applications, name)(
            weights=None, input_shape=shape, classes=10, classifier_activation=None
        )
    # _draw_weights() sets the weights: none are downloaded.
    with (
        unittest.mock.patch("keras.src.utils.file_utils.get_file", return_value=""),
        unittest.mock.patch.object(keras.Model, "load_weights"),
    ):
        return keras.applications.EfficientNetB0(
            weights="imagenet", input_shape=shape, include_top=False, pooling="avg"
        )


def _scaled_logits(model, images):
    """Scales the last kernel until the logits of the images differ by about 1."""
    kernel = [v for v in model.variables if v.name == "kernel"][-1]
    logits = model(images, training=False).numpy()
    kernel.assign(kernel / np.abs(logits[0] - logits[1]).max())
    return model(images, training=False).numpy()


def _draw_weights(model):
    """Keeps the variance about equal from layer to layer, and uses every weight."""
    generator = np.random.default_rng(2)
    for layer in model.layers:
        for variable in layer.variables:
            shape = variable.shape
            if variable.name.endswith("kernel"):
                is_depthwise = variable.path.endswith("depthwise_kernel") or isinstance(
                    layer, keras.layers.DepthwiseConv2D
                )
                fan_in = np.prod(shape[:2] if is_depthwise else shape[:-1])
                value = generator.normal(scale=np.sqrt(2 / fan_in), size=shape)
            elif variable.name == "gamma" and re.match("block.*_project_bn", layer.name):
                # Keeps the images different: the squeeze and excitation of EfficientNet shrink
                # their differences.
                value = generator.uniform(1.75, 2.25, size=shape)
            elif variable.name in ("gamma", "moving_variance"):
                value = generator.uniform(0.75, 1.25, size=shape)
            elif variable.name == "count":
                continue
            elif isinstance(layer, keras.layers.Normalization):
                value = generator.uniform(0.5, 1.5, size=shape)
            else:
                value = generator.uniform(-0.1, 0.1, size=shape)
            variable.assign(value)
        if isinstance(layer, keras.layers.Normalization):
            layer.finalize_state()  # The layer computes with copies of its weights.


if __name__ == "__main__":
    main()
