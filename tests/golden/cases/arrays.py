"""arrays.json: keras.Model with all examples in memory, in order.

config:  "optimizer", and the arguments of fit(): "epochs", and optionally "batch_size",
         "steps_per_epoch", "validation_split". Or "class_weight" (pairs), for
         train_on_batch() with batches of BATCH examples.
inputs:  x, y and optionally sample_weight; the weights before training, by path.
outputs: of fit(): history/<name>, a value for each epoch, then evaluate/<name> and
         predictions for all examples; of train_on_batch(): batches/<name>, a value for
         each batch; the weights after training, by path.
"""

import keras
import numpy as np

from cases.golden_format import case, keras_config, normal, seeded, uniform

EPOCHS = 3
BATCH = 4
EXAMPLES = 11
FEATURES = 3
CLASSES = 3


def cases():
    # 11 * (1 - 0.3) is 7.7: 7 examples are for training and 4 for validation.
    split = {"epochs": EPOCHS, "batch_size": BATCH, "validation_split": 0.3}
    yield _fitted("validation_split", split)
    yield _fitted("sample_weight", split, has_weights=True)
    yield _fitted(
        "default_batch_size", {"epochs": EPOCHS, "validation_split": 0.1}, examples=40
    )
    yield _fitted("batch_size_of_steps", {"epochs": EPOCHS, "steps_per_epoch": 3})
    yield _batch_by_batch("train_on_batch", {"class_weight": [[0, 0.25], [2, 3.0]]})


def _fitted(name, config, examples=EXAMPLES, has_weights=False):
    model, data, before, config, rng = _start(config, examples)
    if has_weights:
        data["sample_weight"] = uniform(rng, examples, low=0.2, high=2.0)
    weights = data.get("sample_weight")
    fit = {key: value for key, value in config.items() if key != "optimizer"}
    history = model.fit(
        data["x"], data["y"], sample_weight=weights, shuffle=False, verbose=0, **fit
    ).history
    outputs = {f"history/{key}": _floats(values) for key, values in history.items()}
    logs = model.evaluate(
        data["x"],
        data["y"],
        sample_weight=weights,
        batch_size=BATCH,
        verbose=0,
        return_dict=True,
    )
    outputs.update({f"evaluate/{key}": _floats([value]) for key, value in logs.items()})
    outputs["predictions"] = model.predict(data["x"], batch_size=BATCH, verbose=0)
    return case(name, config, {**data, **before}, {**outputs, **_weights(model)})


def _batch_by_batch(name, config):
    model, data, before, config, _ = _start(config, EXAMPLES)
    weights = dict(map(tuple, config["class_weight"]))
    logs = {}
    for begin in range(0, EXAMPLES, BATCH):
        of_batch = model.train_on_batch(
            data["x"][begin : begin + BATCH],
            data["y"][begin : begin + BATCH],
            class_weight=weights,
            return_dict=True,
        )
        for key, value in of_batch.items():
            logs.setdefault(key, []).append(value)
    outputs = {f"batches/{key}": _floats(values) for key, values in logs.items()}
    return case(name, config, {**data, **before}, {**outputs, **_weights(model)})


def _start(config, examples):
    rng = seeded(720)
    x = normal(rng, examples, FEATURES)
    y = x.argmax(axis=-1).astype(np.int32)
    model = keras.Sequential(
        [
            keras.Input((FEATURES,)),
            keras.layers.Dense(5, activation="tanh", name="hidden"),
            keras.layers.Dense(CLASSES, name="logits"),
        ]
    )
    optimizer = keras.optimizers.SGD(learning_rate=0.3, momentum=0.9)
    model.compile(
        optimizer,
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        weighted_metrics=["sparse_categorical_accuracy"],
    )
    model.set_weights([0.5 * normal(rng, *v.shape) for v in model.weights])
    config = {**config, "optimizer": keras_config(optimizer)}
    return model, {"x": x, "y": y}, _weights(model), config, rng


def _floats(values):
    return np.array(values, dtype=np.float32)


def _weights(model):
    return {"/".join(weight.path.split("/")[-2:]): weight.numpy() for weight in model.weights}
