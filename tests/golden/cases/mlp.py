"""mlp.json: a 4-8-3 network trained for ten Adam steps.

inputs:  x [10,6,4] and y [10,6], a batch for each step; dense_0/kernel ... dense_1/bias,
         the weights before the first step.
outputs: loss [10], the loss of each step before its update; the weights after the last step.
"""

import keras
import numpy as np
import tensorflow as tf

from cases.golden_format import case, keras_config, normal, seeded

STEPS = 10
BATCH = 6
FEATURES = 4
CLASSES = 3


def cases():
    rng = seeded(500)
    x = normal(rng, STEPS, BATCH, FEATURES)
    # The label is the index of the largest of the first three features.
    y = x[:, :, :CLASSES].argmax(axis=-1).astype(np.int32)

    model = keras.Sequential(
        [
            keras.Input((FEATURES,)),
            keras.layers.Dense(8, activation="relu", name="dense_0"),
            keras.layers.Dense(CLASSES, name="dense_1"),
        ]
    )
    model.set_weights([0.5 * normal(rng, *v.shape) for v in model.weights])
    before = _weights(model)

    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    optimizer = keras.optimizers.Adam(learning_rate=0.02)
    losses = []
    for step in range(STEPS):
        with tf.GradientTape() as tape:
            value = loss(y[step], model(x[step], training=True))
        gradients = tape.gradient(value, model.trainable_weights)
        optimizer.apply(gradients, model.trainable_weights)
        losses.append(value.numpy())

    yield case(
        "mlp_4_8_3",
        {
            "layers": [
                {"class_name": "Dense", "units": 8, "activation": "relu"},
                {"class_name": "Dense", "units": CLASSES, "activation": "linear"},
            ],
            "loss": keras_config(loss),
            "optimizer": keras_config(optimizer),
        },
        {"x": x, "y": y, **before},
        {"loss": np.stack(losses), **_weights(model)},
    )


def _weights(model):
    return {weight.path: weight.numpy() for weight in model.weights}
