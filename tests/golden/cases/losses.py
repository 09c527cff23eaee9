"""losses.json: the value and gradient of each loss.

config:  the loss; "activation" is applied to y_pred before the loss.
inputs:  y_true, y_pred, and optionally sample_weight.
outputs: value (a scalar, or one number per sample if reduction is "none");
         grad_y_pred, the gradient of value, or of its sum if it is not a scalar.
"""

import itertools

import keras
import numpy as np
import tensorflow as tf

from cases.golden_format import case, keras_config, normal, seeded, uniform

BATCH = 5
CLASSES = 4
REDUCTIONS = ("sum_over_batch_size", "sum", "none")


def cases():
    rng = seeded(200)
    yield from _regression(rng)
    yield from _crossentropy(rng)
    yield from _more_ranks(rng)
    yield from _ignored_class(rng)
    yield from _extremes(rng)
    yield from _saturated()
    yield from _errors()
    yield from _classes()
    yield from _focal()
    yield from _generalized()
    yield from _ctc()
    yield from _circle()
    yield from _axes()


def _axes():
    """Crossentropies of classes that are not on the last axis.

    On TensorFlow, Keras' SparseCategoricalCrossentropy refuses other axes.
    """
    rng = seeded(214)
    k = keras.losses
    shape = (BATCH, CLASSES, 2)

    def probabilities():
        scores = uniform(rng, *shape, low=0.1)
        return (scores / scores.sum(axis=1, keepdims=True)).round(3)

    sparse = rng.integers(0, CLASSES, (BATCH, 2))
    one_hot = np.eye(CLASSES, dtype=np.float32)[sparse].transpose(0, 2, 1)
    for (axis, from_logits), reduction in itertools.product(
        ((-2, False), (1, True)), REDUCTIONS
    ):
        for loss, more in (
            (k.BinaryCrossentropy, {"label_smoothing": 0.1}),
            (k.CategoricalCrossentropy, {}),
            (k.CategoricalCrossentropy, {"label_smoothing": 0.1}),
            (k.BinaryFocalCrossentropy, {"apply_class_balancing": True}),
            (k.CategoricalFocalCrossentropy, {"label_smoothing": 0.1}),
        ):
            predictions = normal(rng, *shape) if from_logits else probabilities()
            traits = [f"axis={axis}"] + [f"{key}={value}" for key, value in more.items()]
            yield _run(
                ".".join([_name(loss, reduction, logits=from_logits), *traits]),
                loss(axis=axis, from_logits=from_logits, reduction=reduction, **more),
                one_hot, predictions, arguments={"axis": axis},
            )


def _regression(rng):
    losses = (keras.losses.MeanSquaredError, keras.losses.MeanAbsoluteError)
    for loss, reduction, weighted in itertools.product(losses, REDUCTIONS, (False, True)):
        yield _run(
            _name(loss, reduction, weighted=weighted),
            loss(reduction=reduction),
            normal(rng, BATCH, 3),
            normal(rng, BATCH, 3),
            _weights(rng, weighted),
        )


def _crossentropy(rng):
    """The three crossentropies under every reduction, from logits and probabilities."""
    k = keras.losses
    for reduction, from_logits, weighted in itertools.product(
        REDUCTIONS, (False, True), (False, True)
    ):
        for smoothing in (0.0, 0.1):
            for loss, draw in (
                (k.BinaryCrossentropy, _binary),
                (k.CategoricalCrossentropy, _one_hot),
            ):
                yield _run(
                    _name(
                        loss,
                        reduction,
                        logits=from_logits,
                        smoothed=smoothing > 0,
                        weighted=weighted,
                    ),
                    loss(
                        from_logits=from_logits,
                        label_smoothing=smoothing,
                        reduction=reduction,
                    ),
                    *draw(rng, from_logits),
                    _weights(rng, weighted),
                )
        loss = k.SparseCategoricalCrossentropy
        yield _run(
            _name(loss, reduction, logits=from_logits, weighted=weighted),
            loss(from_logits=from_logits, reduction=reduction),
            *_sparse(rng, from_logits),
            _weights(rng, weighted),
        )


def _more_ranks(rng):
    """Values of rank two, and weights of a lower rank or with an axis to broadcast."""
    shape = (2, 3, CLASSES)
    mse = keras.losses.MeanSquaredError()
    for name, weight_shape in (("each_step", (2, 3)), ("broadcast", (2, 1))):
        yield _run(
            f"MeanSquaredError.rank_3.weights_{name}",
            mse,
            normal(rng, *shape),
            normal(rng, *shape),
            uniform(rng, *weight_shape, high=2.0),
        )
    yield _run(
        "SparseCategoricalCrossentropy.rank_3",
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        rng.integers(0, CLASSES, shape[:2], dtype=np.int32),
        normal(rng, *shape),
    )


def _ignored_class(rng):
    for reduction in REDUCTIONS:
        yield _run(
            f"SparseCategoricalCrossentropy.ignore_class.{reduction}",
            keras.losses.SparseCategoricalCrossentropy(
                from_logits=True, ignore_class=-1, reduction=reduction
            ),
            np.int32([0, -1, 3, -1, 2]),
            normal(rng, BATCH, CLASSES),
        )


def _extremes(rng):
    """Predictions for which a naive formula overflows, divides by zero or does not normalize."""
    logits = np.float32([[90, -90, 0, 30], [-90, 90, 5, -30], [1000, -1000, 0, 1]])
    certain = np.float32([[1, 0, 0, 0], [0, 0, 1, 0], [0.25, 0.25, 0.5, 0]])
    unnormalized = uniform(rng, 3, CLASSES, low=0.1, high=2.0)
    sparse = np.int32([0, 1, 2])
    one_hot = np.eye(CLASSES, dtype=np.float32)[sparse]

    k = keras.losses
    for loss, labels in (
        (k.BinaryCrossentropy, one_hot),
        (k.CategoricalCrossentropy, one_hot),
        (k.SparseCategoricalCrossentropy, sparse),
    ):
        name = loss.__name__
        yield _run(f"{name}.far_logits", loss(from_logits=True), labels, logits)
        yield _run(f"{name}.zero_and_one", loss(), labels, certain)
        if loss is not k.BinaryCrossentropy:
            yield _run(f"{name}.unnormalized_rows", loss(), labels, unnormalized)


def _saturated():
    """Activations that round to 0 and 1, for which Keras' losses use the logits."""
    logits = np.float32([[200, -100, 0, 7], [-50, 300, 20, -8], [-1, 0, 2, 1]])
    sparse = np.int32([1, 2, 0])
    one_hot = np.eye(CLASSES, dtype=np.float32)[sparse]
    weight = np.float32([0.5, 2.0, 1.0])

    k = keras.losses
    for loss, labels, activation in (
        (k.BinaryCrossentropy, one_hot, "sigmoid"),
        (k.CategoricalCrossentropy, one_hot, "softmax"),
        (k.SparseCategoricalCrossentropy, sparse, "softmax"),
    ):
        name = f"{loss.__name__}.saturated"
        yield _run(name, loss(), labels, logits, activation=activation)
        yield _run(f"{name}.weighted", loss(), labels, logits, weight, activation)
        if loss is not k.SparseCategoricalCrossentropy:
            smooth = loss(label_smoothing=0.1)
            yield _run(f"{name}.smoothed", smooth, labels, logits, activation=activation)
    mistaken = k.SparseCategoricalCrossentropy(from_logits=True)
    yield _run(f"{name}.from_logits", mistaken, sparse, logits, activation="softmax")


def _errors():
    """Losses of numbers; their own generator leaves the older cases as they are."""
    rng = seeded(210)
    k = keras.losses

    def positive(rng, *shape):
        return uniform(rng, *shape, low=0.1, high=3.0)

    losses = (
        (k.MeanAbsolutePercentageError, {}, normal),
        (k.MeanSquaredLogarithmicError, {}, positive),
        (k.Huber, {}, normal),
        (k.Huber, {"delta": 0.4}, normal),
        (k.LogCosh, {}, normal),
        (k.CosineSimilarity, {}, normal),
        (k.CosineSimilarity, {"axis": 1}, normal),
        (k.Poisson, {}, positive),
    )
    yield from _plain(rng, losses, (BATCH, 3))
    yield _run(
        "CosineSimilarity.rank_3",
        k.CosineSimilarity(axis=1),
        normal(rng, BATCH, 2, 3),
        normal(rng, BATCH, 2, 3),
        arguments={"axis": 1},
    )
    large = np.float32([[-900, 0, 900], [1e-9, -1, 40]])
    zeros = np.zeros_like(large)
    yield _run("LogCosh.large", k.LogCosh(), zeros, large)
    yield _run("MeanAbsolutePercentageError.zero_labels",
               k.MeanAbsolutePercentageError(), zeros, large)  # fmt: skip
    yield _run("MeanSquaredLogarithmicError.negative",
               k.MeanSquaredLogarithmicError(), large, -large)  # fmt: skip


def _classes():
    """Margins, divergence and overlap."""
    rng = seeded(211)
    k = keras.losses

    def one_hot(rng, *shape):
        return np.eye(shape[-1], dtype=np.float32)[rng.integers(0, shape[-1], shape[:-1])]

    def signs(rng, *shape):
        return 2 * rng.integers(0, 2, shape).astype(np.float32) - 1

    def probabilities(rng, *shape):
        return tf.nn.softmax(normal(rng, *shape)).numpy().round(3)

    shape = (BATCH, CLASSES)
    yield from _plain(rng, ((k.Hinge, {}, signs), (k.SquaredHinge, {}, signs)), shape, normal)
    zero_or_one = (
        (k.Hinge, {}, one_hot),
        (k.SquaredHinge, {}, one_hot),
        (k.CategoricalHinge, {}, one_hot),
    )
    yield from _plain(rng, zero_or_one, shape, normal, "zero_or_one")
    yield from _plain(rng, ((k.KLDivergence, {}, probabilities),), shape)
    yield from _plain(rng, ((k.KLDivergence, {}, one_hot),), shape, probabilities, "one_hot")
    overlaps = (
        (k.Dice, {}, one_hot),
        (k.Dice, {"axis": [1, 2]}, one_hot),
        (k.Tversky, {}, one_hot),
        (k.Tversky, {"alpha": 0.2, "beta": 0.7, "axis": [1, 2]}, one_hot),
    )
    yield from _plain(rng, overlaps, (BATCH, 2, CLASSES), probabilities)
    yield _run(
        "Dice.of_pixels",
        k.Dice(axis=[-1]),
        one_hot(rng, BATCH, 2, CLASSES),
        probabilities(rng, BATCH, 2, CLASSES),
    )


def _plain(rng, losses, shape, predictions=None, trait=None):
    for (loss, arguments, labels), weighted in itertools.product(losses, (False, True)):
        for reduction in REDUCTIONS[:: 2 - weighted]:
            traits = [f"{key}={value}" for key, value in arguments.items()]
            traits += [f"rank_{len(shape)}", trait] if trait else [f"rank_{len(shape)}"]
            yield _run(
                ".".join([_name(loss, reduction, weighted=weighted)] + traits),
                loss(reduction=reduction, **arguments),
                labels(rng, *shape),
                (predictions or labels)(rng, *shape),
                _weights(rng, weighted),
                arguments=arguments,
            )


def _generalized():
    rng = seeded(213)
    for arguments, weighted in itertools.product(({}, {"q": 0.7}), (False, True)):
        traits = [f"{key}={value}" for key, value in arguments.items()]
        loss = keras.losses.CategoricalGeneralizedCrossEntropy
        yield _run(
            ".".join([_name(loss, "sum_over_batch_size", weighted=weighted), *traits]),
            loss(**arguments),
            *_sparse(rng, False),
            _weights(rng, weighted),
            arguments=arguments,
        )


def _focal():
    rng = seeded(212)
    k = keras.losses
    variations = (
        {},
        {"gamma": 1.5, "alpha": 0.6},
        {"label_smoothing": 0.1},
    )
    for arguments, from_logits, weighted in itertools.product(
        variations, (False, True), (False, True)
    ):
        traits = [f"{key}={value}" for key, value in arguments.items()]
        for loss, draw, more in (
            (k.BinaryFocalCrossentropy, _binary, {}),
            (k.BinaryFocalCrossentropy, _binary, {"apply_class_balancing": True}),
            (k.CategoricalFocalCrossentropy, _one_hot, {}),
        ):
            name = _name(loss, "mean", logits=from_logits, weighted=weighted, balanced=more)
            yield _run(
                ".".join([name] + traits),
                loss(from_logits=from_logits, **arguments, **more),
                *draw(rng, from_logits),
                _weights(rng, weighted),
            )
    logits = np.float32([[20, -10, 0, 7], [-5, 30, 2, -8], [-1, 0, 2, 1]])
    one_hot = np.eye(CLASSES, dtype=np.float32)[[1, 2, 0]]
    for loss, activation in (
        (k.BinaryFocalCrossentropy, "sigmoid"),
        (k.CategoricalFocalCrossentropy, "softmax"),
    ):
        name = f"{loss.__name__}.saturated"
        yield _run(name, loss(), one_hot, logits, activation=activation)


def _binary(rng, from_logits):
    labels = rng.integers(0, 2, (BATCH, 3)).astype(np.float32)
    if from_logits:
        return labels, normal(rng, BATCH, 3)
    return labels, uniform(rng, BATCH, 3, low=0.02, high=0.98)


def _sparse(rng, from_logits):
    labels = rng.integers(0, CLASSES, BATCH, dtype=np.int32)
    logits = normal(rng, BATCH, CLASSES)
    if from_logits:
        return labels, logits
    return labels, tf.nn.softmax(logits).numpy().round(3)


def _one_hot(rng, from_logits):
    labels, predictions = _sparse(rng, from_logits)
    return np.eye(CLASSES, dtype=np.float32)[labels], predictions


def _weights(rng, weighted):
    return uniform(rng, BATCH, high=2.0) if weighted else None


def _name(loss, reduction, **traits):
    return ".".join(
        [loss.__name__, reduction] + [key for key, is_so in traits.items() if is_so]
    )


def _run(name, loss, y_true, y_pred, weight=None, activation=None, arguments=None):
    """`arguments` are those that Keras leaves out of the loss's config."""
    prediction = tf.constant(y_pred)
    with tf.GradientTape() as tape:
        tape.watch(prediction)
        activated = keras.activations.get(activation)(prediction)
        value = loss(y_true, activated, sample_weight=weight)
    gradient = tape.gradient(value, prediction)

    inputs = {"y_true": y_true, "y_pred": y_pred}
    if weight is not None:
        inputs["sample_weight"] = weight
    return case(
        name,
        keras_config(loss)
        | (arguments or {})
        | ({"activation": activation} if activation else {}),
        inputs,
        {"value": value.numpy(), "grad_y_pred": gradient.numpy()},
    )


def _ctc():
    rng = seeded(210)
    labels = np.int32([[1, 2, 3, 0], [2, 2, 0, 0], [3, 1, 1, 3], [0, 0, 0, 0]])
    for reduction in REDUCTIONS:
        yield _run(
            f"CTC.{reduction}",
            keras.losses.CTC(reduction=reduction),
            labels,
            normal(rng, 4, 7, CLASSES),
            _weights(rng, False),
        )
    # Exactly as many steps as the labels need.
    yield _run("CTC.one_way", keras.losses.CTC(), np.int32([[1, 1, 2]]),
               2 * normal(rng, 1, 4, CLASSES))


def _circle():
    rng = seeded(211)
    labels = np.int32([0, 1, 0, 2, 1, 0])

    def embeddings(size=6):
        x = normal(rng, size, 3)
        return (x / np.linalg.norm(x, axis=-1, keepdims=True)).astype(np.float32)

    with_pairs = np.int32([0, 1, 0, 2, 1, 2])
    for reduction in REDUCTIONS:
        yield _run(f"Circle.{reduction}",
                   keras.losses.Circle(gamma=4.0, margin=0.25, reduction=reduction),
                   with_pairs, embeddings())
    yield _run("Circle.column", keras.losses.Circle(), with_pairs[:, None], embeddings())
    yield _run("Circle.diagonal", keras.losses.Circle(gamma=2.0, remove_diagonal=False),
               labels, embeddings())
