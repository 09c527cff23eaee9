"""masks.json: models with padding in their outputs: evaluated, and trained two epochs.

config:  "model" and other properties that the C++ test reproduces; "loss_weights".
inputs:  x, ids in which 0 is padding (in "nothing_counts" the whole first batch); y (and
         y_1 for two outputs); optionally sample_weight (and sample_weight_1); weight_<i>,
         the model's weights before training, in Keras' order. Batches of 4.
outputs: batch/<name>, the results of test_on_batch() for the first batch, and test/<name>,
         those of evaluate() for all, both before training; history/<name> [2], a value for
         each epoch; weight_<i>, the weights after training.
"""

import keras
import numpy as np
import tensorflow as tf

from cases.golden_format import case, normal, seeded, uniform

BATCH = 4
EXAMPLES = 8
TIMES = 5
WORDS = 7
TAGS = 3
WIDTH = 4
EPOCHS = 2

CLASS_WEIGHT = [[0, 0.25], [2, 3.0]]


def cases():
    yield _tagger("lstm", {"model": "lstm"})
    yield _tagger("gru", {"model": "gru"})
    yield _tagger("weights", {"model": "lstm"}, weight_shape=(EXAMPLES, TIMES))
    yield _tagger("weights_of_examples", {"model": "gru"}, weight_shape=(EXAMPLES, 1))
    yield _tagger("sum", {"model": "gru", "reduction": "sum"})
    yield _tagger("ignored_class", {"model": "gru", "ignore_class": 1})
    yield _tagger(
        "ignored_class_weights",
        {"model": "gru", "ignore_class": 1},
        weight_shape=(EXAMPLES, TIMES),
    )
    yield _tagger("class_weight", {"model": "gru", "class_weight": CLASS_WEIGHT})
    yield _tagger("merged", {"model": "merged"})
    yield _tagger("time_joined", {"model": "time_joined"})
    yield _tagger("normalized", {"model": "normalized"})
    yield _tagger("half_masked", {"model": "half_masked"})
    yield _tagger("mask_ends", {"model": "mask_ends"})
    yield _tagger("attention", {"model": "attention"})
    yield _tagger("minimum", {"model": "minimum"})
    yield _tagger("half_maximum", {"model": "half_maximum"})
    yield _tagger("product", {"model": "product"})
    yield _tagger("nothing_counts", {"model": "regularized"})
    yield _binary()
    yield _two_outputs("two_outputs", weighted=False)
    yield _two_outputs("two_outputs_weights", weighted=True)


def _tags(config):
    layers = keras.layers
    ids = keras.Input((TIMES,), dtype="int32")
    x = layers.Embedding(WORDS, WIDTH, mask_zero=True)(ids)
    kind = config["model"]
    if kind == "lstm":
        x = layers.LSTM(WIDTH, return_sequences=True)(x)
    elif kind == "gru":
        x = layers.GRU(WIDTH, return_sequences=True)(x)
    elif kind == "merged":
        # Every layer on this path keeps the mask.
        x = layers.Add()([x, layers.Dense(WIDTH)(x)])
        x = layers.LayerNormalization()(layers.Rescaling(0.5)(x))
        x = layers.Concatenate()([layers.ReLU(negative_slope=0.1)(x), x])
        x = layers.Activation("tanh")(x)
    elif kind == "time_joined":
        # Twice as many positions; the second half is not masked.
        x = layers.Concatenate(axis=1)([x, layers.Embedding(WORDS, WIDTH)(ids)])
    elif kind == "regularized":
        x = layers.Dense(WIDTH, kernel_regularizer=keras.regularizers.L2(0.1))(x)
    elif kind == "normalized":
        x = layers.BatchNormalization(momentum=0.8)(x)
    elif kind == "half_masked":
        x = layers.Add()([x, layers.Embedding(WORDS, WIDTH)(ids)])
    elif kind == "attention":
        # Masked positions count in the loss, because the Reshape below drops the mask.
        x = layers.MultiHeadAttention(2, 3)(x, x, use_causal_mask=True)
    elif kind == "minimum":
        x = layers.Minimum()([x, layers.Dense(WIDTH)(x)])
    elif kind == "half_maximum":
        x = layers.Maximum()([layers.Embedding(WORDS, WIDTH)(ids), x, layers.Dense(WIDTH)(x)])
    elif kind == "product":
        x = layers.Multiply()([x, layers.Dense(WIDTH)(x)])
    if kind in ("mask_ends", "attention", "minimum", "half_maximum", "product"):
        x = layers.Reshape((TIMES, WIDTH))(x)
    return keras.Model(ids, layers.Dense(TAGS, activation="softmax")(x))


def _tagger(name, config, weight_shape=None):
    rng = seeded(710)
    times = 2 * TIMES if config["model"] == "time_joined" else TIMES
    y = rng.integers(0, TAGS, (EXAMPLES, times)).astype(np.int32)
    reduction = config.get("reduction", "sum_over_batch_size")
    options = {}
    if "class_weight" in config:
        options["class_weight"] = dict(map(tuple, config["class_weight"]))
        y = np.eye(TAGS, dtype=np.float32)[y]
        loss = keras.losses.CategoricalCrossentropy(reduction=reduction)
        metrics = [keras.metrics.CategoricalAccuracy()]
        weighted_metrics = [keras.metrics.CategoricalCrossentropy()]
    else:
        loss = keras.losses.SparseCategoricalCrossentropy(
            reduction=reduction, ignore_class=config.get("ignore_class")
        )
        metrics = [keras.metrics.SparseCategoricalAccuracy()]
        weighted_metrics = [keras.metrics.SparseCategoricalCrossentropy()]
    model = _tags(config)
    model.compile(
        keras.optimizers.SGD(0.05 if reduction == "sum" else 0.5),
        loss,
        metrics=metrics,
        weighted_metrics=weighted_metrics,
    )
    data = {"x": _ids(rng), "y": y}
    if name == "nothing_counts":
        data["x"][:BATCH] = 0
    if weight_shape is not None:
        data["sample_weight"] = uniform(rng, *weight_shape, high=2.0)
    return _trained(name, config, model, data, rng, **options)


def _binary():
    """Two metrics, of which AUC ignores masks."""
    rng = seeded(711)
    model = keras.Sequential(
        [
            keras.Input((TIMES,), dtype="int32"),
            keras.layers.Embedding(WORDS, WIDTH, mask_zero=True),
            keras.layers.Dense(1, activation="sigmoid"),
        ]
    )
    model.compile(
        keras.optimizers.SGD(0.5),
        keras.losses.BinaryCrossentropy(),
        metrics=[keras.metrics.AUC(num_thresholds=50), keras.metrics.BinaryAccuracy()],
    )
    data = {
        "x": _ids(rng),
        "y": rng.integers(0, 2, (EXAMPLES, TIMES, 1)).astype(np.float32),
    }
    return _trained("binary", {"model": "binary"}, model, data, rng)


def _two_outputs(name, weighted):
    rng = seeded(712)
    ids = keras.Input((TIMES,), dtype="int32")
    x = keras.layers.Embedding(WORDS, WIDTH, mask_zero=True)(ids)
    x = keras.layers.GRU(WIDTH, return_sequences=True)(x)
    tags = keras.layers.Dense(TAGS, activation="softmax", name="tags")(x)
    length = keras.layers.Dense(1, name="length")(keras.layers.GRU(WIDTH)(x))
    model = keras.Model(ids, [tags, length])
    model.compile(
        keras.optimizers.SGD(0.2),
        [
            keras.losses.SparseCategoricalCrossentropy(),
            keras.losses.MeanSquaredError(),
        ],
        loss_weights=[2.0, 0.5],
        metrics=[["sparse_categorical_accuracy"], ["mean_absolute_error"]],
    )
    words = _ids(rng)
    data = {
        "x": words,
        "y": rng.integers(0, TAGS, (EXAMPLES, TIMES)).astype(np.int32),
        "y_1": (words > 0).sum(axis=-1, keepdims=True).astype(np.float32) / TIMES,
    }
    if weighted:
        data["sample_weight"] = uniform(rng, EXAMPLES, TIMES, high=2.0)
        data["sample_weight_1"] = uniform(rng, EXAMPLES, high=2.0)
    config = {"model": "two_outputs", "loss_weights": [2.0, 0.5]}
    return _trained(name, config, model, data, rng)


def _ids(rng):
    """Padding at the front, inside and at the end, and a row of only padding."""
    ids = rng.integers(0, WORDS, (EXAMPLES, TIMES)).astype(np.int32)
    ids[0, 3:] = 0
    ids[1] = 0
    ids[2, :2] = 0
    ids[3] = 1 + ids[3] % (WORDS - 1)
    return ids


def _trained(name, config, model, data, rng, **options):
    # Small enough that probabilities are not close to 0 and 1.
    for weight in model.weights:
        drawn = 0.5 * normal(rng, *weight.shape)
        weight.assign(abs(drawn) if weight.path.endswith("variance") else drawn)
    before = _weights(model)

    def structured(*keys):
        found = tuple(data[key] for key in keys if key in data)
        return found if len(found) != 1 else found[0]

    element = [structured("x"), structured("y", "y_1")]
    if "sample_weight" in data:
        element.append(structured("sample_weight", "sample_weight_1"))
    batches = tf.data.Dataset.from_tensor_slices(tuple(element)).batch(BATCH)

    def of_first_batch(part):
        return tuple(p[:BATCH] for p in part) if isinstance(part, tuple) else part[:BATCH]

    first = model.test_on_batch(*map(of_first_batch, element), return_dict=True)
    scores = model.evaluate(batches, verbose=0, return_dict=True)
    history = model.fit(batches, epochs=EPOCHS, verbose=0, **options).history
    logs = {f"batch/{key}": np.float32(value) for key, value in first.items()}
    logs |= {f"test/{key}": np.float32(value) for key, value in scores.items()}
    logs |= {f"history/{key}": np.array(value, np.float32) for key, value in history.items()}
    return case(name, config, {**data, **before}, {**logs, **_weights(model)})


def _weights(model):
    return {f"weight_{i}": weight.numpy() for i, weight in enumerate(model.weights)}
