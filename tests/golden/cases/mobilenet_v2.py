"""mobilenet_v2.json: a narrow MobileNetV2 for small images.

Weights and images are not stored. Element i of the weight with index k (in the order of
model.weights) is computed from drawn(k, i); images have index 1000; labels are i % 10.

After the third block, no input of a relu6 is close to its kinks. At that depth, rounding
errors could move an element to the other side of a kink, which changes all gradients in
front of it by two percent.

outputs: logits [2, 10], in inference mode; loss, of the images in training mode, before
         one step of SGD; names and shapes of the weights; for each weight, in order,
         change_norm, the norm of its change in the step, and change_projections
         [weights, 2], the scalar products of the change with drawn(2000 + k, i) and
         drawn(3000 + k, i).
"""

import keras
import numpy as np
import tensorflow as tf

from cases.golden_format import case

SHAPE = (64, 96, 3)
CLASSES = 10
LEARNING_RATE = 0.05
FIRST_OF_FOURTH_BLOCK = 45  # The index of its first weight.


def cases():
    model = keras.applications.MobileNetV2(
        input_shape=SHAPE, alpha=0.35, classes=CLASSES, weights=None, classifier_activation=None
    )
    before = [_initial(v, k) for k, v in enumerate(model.weights)]
    model.set_weights(before)
    images = drawn(1000, 2 * np.prod(SHAPE)).astype(np.float32).reshape(2, *SHAPE)
    labels = np.int32([0, 1])
    logits = model(images, training=False).numpy()

    loss_function = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    with tf.GradientTape() as tape:
        loss = loss_function(labels, model(images, training=True))
    gradients = tape.gradient(loss, model.trainable_weights)
    optimizer = keras.optimizers.SGD(learning_rate=LEARNING_RATE)
    optimizer.apply(gradients, model.trainable_weights)

    norms, projections = [], []
    for k, (old, variable) in enumerate(zip(before, model.weights)):
        change = (variable.numpy().astype(np.float64) - old).ravel()
        norms.append(np.linalg.norm(change))
        projections.append([change @ drawn(base + k, change.size) for base in (2000, 3000)])
    yield case(
        "mobilenet_v2_0.35",
        {
            "input_shape": list(SHAPE),
            "alpha": 0.35,
            "classes": CLASSES,
            "learning_rate": LEARNING_RATE,
        },
        {},
        {
            "logits": logits,
            "loss": loss.numpy(),
            "names": [v.path for v in model.weights],
            "shapes": [list(v.shape) for v in model.weights],
            "change_norm": np.float64(norms).astype(np.float32),
            "change_projections": np.float64(projections).astype(np.float32),
        },
    )


def drawn(key, count):
    """Pseudorandom numbers in [-1, 1): murmur3's mixer over a counter."""
    x = np.arange(count, dtype=np.uint64) + np.uint64(key) * np.uint64(1000003)
    x = (x & np.uint64(0xFFFFFFFF)).astype(np.uint32)
    x ^= x >> np.uint32(16)
    x *= np.uint32(0x85EBCA6B)
    x ^= x >> np.uint32(13)
    x *= np.uint32(0xC2B2AE35)
    x ^= x >> np.uint32(16)
    return (x >> np.uint32(8)).astype(np.float64) / 2**23 - 1


def _initial(variable, key):
    numbers = drawn(key, int(np.prod(variable.shape))).reshape(variable.shape)
    kind = variable.name
    if kind == "kernel":
        # Keeps the variance equal from layer to layer.
        is_depthwise = "depthwise" in variable.path
        fan_in = np.prod(variable.shape[:2] if is_depthwise else variable.shape[:-1])
        numbers = numbers * np.sqrt(6.0 / fan_in)
    elif kind == "gamma" and _keeps_off_kinks(variable, key):
        numbers = 0.4 + numbers / 5
    elif kind == "beta" and _keeps_off_kinks(variable, key):
        numbers = 3 + numbers / 10
    elif kind in ("gamma", "moving_variance"):
        numbers = 1 + numbers / 2
    else:
        numbers = numbers / 10
    return numbers.astype(np.float32)


def _keeps_off_kinks(variable, key):
    return key >= FIRST_OF_FOURTH_BLOCK and "project" not in variable.path
