"""loss_scale.json: steps of models whose policy is mixed_float16.

The first scales are too large, so that gradients overflow float16.

config:  optimizer: the JSON that Keras writes of what compile() was given.
inputs:  x, y: the batch of every step; weight_<i> before the first one.
outputs: of each step: loss, and after it dynamic_scale, step_counter and iterations;
         weight_<i> after the last step; prediction, of float16, before the first one.

With "saved", Keras has saved the model as ../keras_files/mixed_float16.keras after so
many of the steps.
"""

import pathlib

import keras
import numpy as np
from keras import layers, optimizers

from cases.golden_format import case, normal, seeded

FOLDER = pathlib.Path(__file__).parent.parent / "keras_files"
BATCH = 6
STEPS = 12
SAVED = 7


def cases():
    scaled = {"initial_scale": 2.0**20, "dynamic_growth_steps": 3}
    yield _case("momentum", optimizers.LossScaleOptimizer(
        optimizers.SGD(0.125, momentum=0.75), **scaled))
    yield _case("adam", optimizers.LossScaleOptimizer(optimizers.Adam(0.01), **scaled))
    yield _case("accumulated", optimizers.LossScaleOptimizer(
        optimizers.SGD(0.125, global_clipnorm=0.5, gradient_accumulation_steps=2,
                       use_ema=True), **scaled))
    # Model.compile() wraps it in a LossScaleOptimizer.
    yield _case("mixed_float16", optimizers.SGD(0.001, momentum=0.75), saved=SAVED, gain=64)


def _case(name, optimizer, saved=None, gain=1):
    keras.config.set_dtype_policy("mixed_float16")
    rng = seeded(2600)
    model = keras.Sequential([
        keras.Input((4,)),
        layers.Dense(5, activation="tanh"),
        layers.LayerNormalization(),
        layers.Dense(3),
    ])
    x, y = normal(rng, BATCH, 4), normal(rng, BATCH, 3) * np.float32(gain)
    model.set_weights([normal(rng, *w.shape) / 2 for w in model.get_weights()])
    inputs = {"x": x, "y": y, **_weights(model)}
    described = keras.optimizers.serialize(optimizer)
    model.compile(optimizer, "mse")
    outputs = {"prediction": np.asarray(model(x))}
    losses, scales, counters, iterations = [], [], [], []
    for step in range(STEPS):
        model.reset_metrics()
        losses.append(model.train_on_batch(x, y))
        scales.append(float(model.optimizer.dynamic_scale))
        counters.append(int(model.optimizer.step_counter))
        iterations.append(int(model.optimizer.iterations))
        if step + 1 == saved:
            model.save(FOLDER / f"{name}.keras")
    outputs.update({
        "loss": np.array(losses, np.float32),
        "dynamic_scale": np.array(scales, np.float32),
        "step_counter": np.array(counters, np.int64),
        "iterations": np.array(iterations, np.int64),
        **_weights(model),
    })
    keras.config.set_dtype_policy("float32")
    config = {"optimizer": described}
    if saved is not None:
        config["saved"] = saved
    return case(name, config, inputs, outputs)


def _weights(model):
    return {f"weight_{i}": w for i, w in enumerate(model.get_weights())}
