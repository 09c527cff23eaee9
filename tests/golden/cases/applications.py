"""applications.json: models of keras.applications for small images.

Weights and images are not stored. Element i of the weight with index k (in the order of
model.weights, where Normalization's count is left out) is computed from drawn(k, i);
images have index 1000.

outputs: logits [2, 10], in inference mode; names and shapes of the weights.
"""

import keras
import numpy as np

from cases.golden_format import case
from cases.mobilenet_v2 import drawn

CLASSES = 10
MODELS = {
    "ResNet50": (64, 96, 3),
    "VGG16": (32, 64, 3),
    "MobileNet": (64, 96, 3),
    "EfficientNetB0": (75, 96, 3),
}


def cases():
    for name, shape in MODELS.items():
        model = drawn_model(name)
        weights = _weights(model)
        logits = model(_drawn_images(name), training=False).numpy()
        yield case(
            name,
            {"input_shape": list(shape), "classes": CLASSES},
            {},
            {
                "logits": logits,
                "names": [v.path for v in weights],
                "shapes": [list(v.shape) for v in weights],
            },
        )


def drawn_model(name):
    # Keras numbers unnamed layers of one kind across the session.
    keras.utils.clear_session(free_memory=False)
    model = getattr(keras.applications, name)(
        input_shape=MODELS[name], classes=CLASSES, weights=None, classifier_activation=None
    )
    for k, variable in enumerate(_weights(model)):
        variable.assign(_initial(variable, k))
    for layer in model.layers:
        if isinstance(layer, keras.layers.Normalization):
            layer.finalize_state()  # The layer computes with copies of its weights.
    return model


def _weights(model):
    """Returns the weights, without the number of examples to which a Normalization was adapted."""
    return [v for v in model.weights if v.path != "normalization/count"]


def _drawn_images(name):
    shape = MODELS[name]
    numbers = drawn(1000, 2 * np.prod(shape)).astype(np.float32).reshape(2, *shape)
    return 127.5 + 127.5 * numbers if name == "EfficientNetB0" else numbers


def _initial(variable, key):
    numbers = drawn(key, int(np.prod(variable.shape))).reshape(variable.shape)
    if variable.name == "kernel":
        # Keeps the variance equal from layer to layer.
        is_depthwise = "_dw" in variable.path
        fan_in = np.prod(variable.shape[:2] if is_depthwise else variable.shape[:-1])
        numbers = numbers * np.sqrt(6.0 / fan_in)
    elif variable.path.endswith("project_bn/gamma"):
        # Keeps the images different: squeeze and excitation shrink their differences.
        numbers = 1.25 + numbers / 2
    elif variable.name in ("gamma", "moving_variance", "variance"):
        numbers = 1 + numbers / 2
    else:
        numbers = numbers / 10
    return numbers.astype(np.float32)
