"""applications.json: models of keras.applications for small images.

Weights and images are not stored. Element i of the weight with index k (in the order of
model.weights) is computed from drawn(k, i); images have index 1000.

outputs: logits [2, 10], in inference mode; names and shapes of the weights.
"""

import keras
import numpy as np

from cases.golden_format import case
from cases.mobilenet_v2 import drawn

CLASSES = 10
MODELS = {"ResNet50": (64, 96, 3), "VGG16": (32, 64, 3), "MobileNet": (64, 96, 3)}


def cases():
    for name, shape in MODELS.items():
        application = getattr(keras.applications, name)
        model = application(
            input_shape=shape, classes=CLASSES, weights=None, classifier_activation=None
        )
        model.set_weights([_initial(v, k) for k, v in enumerate(model.weights)])
        logits = model(drawn_images(shape), training=False).numpy()
        yield case(
            name,
            {"input_shape": list(shape), "classes": CLASSES},
            {},
            {
                "logits": logits,
                "names": [v.path for v in model.weights],
                "shapes": [list(v.shape) for v in model.weights],
            },
        )


def drawn_images(shape):
    return drawn(1000, 2 * np.prod(shape)).astype(np.float32).reshape(2, *shape)


def _initial(variable, key):
    numbers = drawn(key, int(np.prod(variable.shape))).reshape(variable.shape)
    if variable.name == "kernel":
        # Keeps the variance equal from layer to layer.
        is_depthwise = "_dw_" in variable.path
        fan_in = np.prod(variable.shape[:2] if is_depthwise else variable.shape[:-1])
        numbers = numbers * np.sqrt(6.0 / fan_in)
    elif variable.name in ("gamma", "moving_variance"):
        numbers = 1 + numbers / 2
    else:
        numbers = numbers / 10
    return numbers.astype(np.float32)
