"""training.json: two epochs of keras.Model.fit(), each case with one of its options.

config:  the option: "optimizer", "layers" (kernel and bias regularizers as
         {"l1": .., "l2": ..}, trainable), "class_weight" (pairs), "loss_weights",
         "activation" (of the last layer, whose inputs are large enough to saturate it),
         "embedding" (all rows of which are updated), "constraints" (of a kernel, a bias
         or embeddings, as [function, config]).
inputs:  x, y (and x_1, y_1 for two outputs), the examples in order, in batches of 4;
         the weights before training, by path.
outputs: history/<name> [2], a value for each epoch; the weights after training, by path.
"""

import keras
import numpy as np

from cases.golden_format import case, keras_config, normal, seeded

EPOCHS = 2
BATCH = 4
EXAMPLES = 10
FEATURES = 3
CLASSES = 3

L1 = 0.02
L2 = 0.1


def cases():
    sgd = {"learning_rate": 0.5, "momentum": 0.9}
    for name, limit in (("clipnorm", 0.3), ("clipvalue", 0.1), ("global_clipnorm", 0.4)):
        yield _classifier(name, {"optimizer": {**sgd, name: limit}})
    yield _classifier("regularizers", {"regularizers": True})
    yield _classifier("frozen", {"frozen": True})
    yield _classifier("class_weight", {"class_weight": [[0, 0.25], [2, 3.0]]})
    yield _classifier(
        "class_weight_one_hot", {"class_weight": [[0, 0.25], [2, 3.0]], "one_hot": True}
    )
    yield _classifier("loss_weight", {"loss_weights": [0.25], "regularizers": True})
    yield _classifier("saturated_softmax", {"activation": "softmax"})
    yield _classifier("saturated_sigmoid", {"activation": "sigmoid", "one_hot": True})
    yield _classifier(
        "saturated_softmax_one_hot",
        {"activation": "softmax", "one_hot": True, "class_weight": [[0, 0.25], [2, 3.0]]},
    )
    yield _two_outputs()
    yield _embedding()
    yield from _constraints()


def _classifier(name, config):
    rng = seeded(700)
    activation = config.get("activation")
    x = normal(rng, EXAMPLES, FEATURES) * np.float32(64 if activation else 1)
    y = x.argmax(axis=-1).astype(np.int32)
    regularizer = keras.regularizers.L1L2(l1=L1, l2=L2) if "regularizers" in config else None
    constraints = _constraint_arguments(config)
    model = keras.Sequential(
        [
            keras.Input((FEATURES,)),
            keras.layers.Dense(
                5,
                activation="linear" if activation else "tanh",
                name="hidden",
                kernel_regularizer=regularizer,
                trainable="frozen" not in config,
                **constraints,
            ),
            keras.layers.Dense(
                CLASSES,
                activation=activation,
                name="logits",
                bias_regularizer=keras.regularizers.L2(L2) if regularizer else None,
            ),
        ]
    )
    if "one_hot" in config:
        y = np.eye(CLASSES, dtype=np.float32)[y]
        loss = (
            keras.losses.BinaryCrossentropy()
            if activation == "sigmoid"
            else keras.losses.CategoricalCrossentropy(from_logits=activation is None)
        )
        metrics = ["categorical_accuracy"]
    else:
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=activation is None)
        metrics = ["sparse_categorical_accuracy"]
    rate = 1e-3 if activation else 0.2
    optimizer = keras.optimizers.SGD(**config.get("optimizer", {"learning_rate": rate}))
    model.compile(
        optimizer,
        loss,
        weighted_metrics=metrics,
        loss_weights=config.get("loss_weights"),
    )
    return _trained(
        name,
        {**config, "optimizer": keras_config(optimizer)},
        model,
        {"x": x, "y": y},
        rng,
        class_weight=dict(map(tuple, config["class_weight"]))
        if "class_weight" in config
        else None,
    )


def _embedding():
    """Momentum also moves rows that do not occur in a batch."""
    optimizer = keras.optimizers.SGD(0.2, momentum=0.9)
    return _trained_embedding(
        "embedding_all_rows", {"embedding": True}, optimizer, seeded(702)
    )


def _trained_embedding(name, config, optimizer, rng):
    x = rng.integers(0, 8, size=(EXAMPLES, 2)).astype(np.int32)
    model = keras.Sequential(
        [
            keras.Input((2,), dtype="int32"),
            keras.layers.Embedding(8, 3, name="words", **_constraint_arguments(config)),
            keras.layers.Flatten(),
            keras.layers.Dense(CLASSES, name="logits"),
        ]
    )
    model.compile(
        optimizer,
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        weighted_metrics=["sparse_categorical_accuracy"],
    )
    data = {"x": x, "y": (x.sum(axis=1) % CLASSES).astype(np.int32)}
    config = {**config, "optimizer": keras_config(optimizer)}
    return _trained(name, config, model, data, rng)


def _constraints():
    """Includes accumulated gradients, and averages that replace the weights."""
    c = keras.constraints
    steep = {"optimizer": {"learning_rate": 0.5, "momentum": 0.9}}
    yield _constrained("max_norm", c.MaxNorm(0.6), c.NonNeg(), steep)
    yield _constrained("max_norm_of_rows", c.MaxNorm(0.8, axis=-1), None, steep)
    yield _constrained("unit_norm", c.UnitNorm(), c.MaxNorm(0.25), steep)
    yield _constrained("unit_norm_over_all", c.UnitNorm(axis=[0, 1]), None, steep)
    yield _constrained("min_max_norm", c.MinMaxNorm(0.5, 0.75, 0.5, axis=0), c.NonNeg(), steep)
    slow = c.MinMaxNorm(0.25, 0.5, 0.3, axis=1)
    accumulating = {"learning_rate": 0.5, "gradient_accumulation_steps": 2}
    yield _constrained("constraint_accumulating", slow, None, {"optimizer": accumulating})
    accumulating["clipnorm"] = 0.3
    yield _constrained("constraint_clipped_mean", slow, None, {"optimizer": accumulating})
    averaging = {"learning_rate": 0.5, "use_ema": True, "ema_momentum": 0.5,
                 "ema_overwrite_frequency": 2}
    yield _constrained("constraint_averaging", slow, None, {"optimizer": averaging})
    yield _constrained_embedding("constrained_embedding", c.MaxNorm(0.7))
    yield _constrained_embedding("constrained_embedding_rows", c.MinMaxNorm(0.5, 0.6, 0.5, 1))


def _constrained(name, kernel, bias, config):
    constraints = {"kernel": _named(kernel)}
    if bias is not None:
        constraints["bias"] = _named(bias)
    return _classifier(name, {**config, "constraints": constraints})


def _named(constraint):
    class_name = type(constraint).__name__
    name = next(
        name
        for name in ("max_norm", "non_neg", "unit_norm", "min_max_norm")
        if name.replace("_", "") == class_name.lower()
    )
    config = constraint.get_config()
    if "axis" in config:
        config["axis"] = np.atleast_1d(config["axis"]).tolist()
    return [name, config]


def _constraint_arguments(config):
    return {
        f"{weight}_constraint": getattr(keras.constraints, name)(**arguments)
        for weight, (name, arguments) in config.get("constraints", {}).items()
    }


def _constrained_embedding(name, constraint):
    """Without momentum, so that rows that do not occur in a batch are not updated."""
    config = {"embedding": "rows", "constraints": {"embeddings": _named(constraint)}}
    optimizer = keras.optimizers.SGD(0.2)
    return _trained_embedding(name, config, optimizer, seeded(703))


def _two_outputs():
    # All batches have the same size. In Keras, the losses of single outputs are
    # means over batches of any size, while the other logs are means over
    # examples.
    rng = seeded(701)
    a = keras.Input((FEATURES,), name="a")
    b = keras.Input((2,), name="b")
    price = keras.layers.Dense(1, name="price")(a)
    kind = keras.layers.Dense(CLASSES, name="kind")(b)
    model = keras.Model([a, b], [price, kind])
    optimizer = keras.optimizers.SGD(0.1, global_clipnorm=0.7)
    model.compile(
        optimizer,
        [
            keras.losses.MeanSquaredError(),
            keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        ],
        loss_weights=[2.0, 0.5],
        metrics=[["mean_absolute_error"], ["sparse_categorical_accuracy"]],
    )
    x = normal(rng, 2 * BATCH, FEATURES)
    return _trained(
        "two_outputs",
        {"optimizer": keras_config(optimizer), "loss_weights": [2.0, 0.5]},
        model,
        {
            "x": x,
            "x_1": normal(rng, 2 * BATCH, 2),
            "y": normal(rng, 2 * BATCH, 1),
            "y_1": x.argmax(axis=-1).astype(np.int32),
        },
        rng,
    )


def _trained(name, config, model, data, rng, **options):
    model.set_weights([0.5 * normal(rng, *v.shape) for v in model.weights])
    before = _weights(model)
    x = [data[key] for key in ("x", "x_1") if key in data]
    y = [data[key] for key in ("y", "y_1") if key in data]
    history = model.fit(
        x if len(x) > 1 else x[0],
        y if len(y) > 1 else y[0],
        batch_size=BATCH,
        epochs=EPOCHS,
        shuffle=False,
        verbose=0,
        **options,
    ).history
    values = {
        f"history/{key}": np.array(value, dtype=np.float32)
        for key, value in history.items()
    }
    return case(name, config, {**data, **before}, {**values, **_weights(model)})


def _weights(model):
    return {"/".join(weight.path.split("/")[-2:]): weight.numpy() for weight in model.weights}
