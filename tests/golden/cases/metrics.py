"""metrics.json: metrics over several batches of different sizes.

inputs:  for batch i: y_true_<i> and y_pred_<i> (for Mean and Sum: values_<i>), and optionally
         sample_weight_<i>.
outputs: result [batches], the value of the metric after each batch; [batches, numbers] where
         the value is a list.
"""

import keras
import numpy as np
import tensorflow as tf
from keras.src.trainers import compile_utils

from cases.golden_format import case, keras_config, normal, seeded, uniform

# A curve needs more samples than a mean.
BATCH_SIZES = (5, 1, 8, 3)
CURVE_BATCH_SIZES = (15, 2, 24, 9)
CLASSES = 7


def cases():
    m = keras.metrics
    yield from _both_weightings(m.Mean, _values)
    yield from _both_weightings(m.Sum, _values)
    yield from _both_weightings(m.MeanSquaredError, _regression)
    yield from _both_weightings(m.MeanAbsoluteError, _regression)
    yield from _both_weightings(m.BinaryAccuracy, _binary)
    yield from _both_weightings(m.BinaryAccuracy, _binary, threshold=0.3)
    yield from _both_weightings(m.CategoricalAccuracy, _one_hot)
    yield from _both_weightings(m.SparseCategoricalAccuracy, _sparse)
    for k in (3, 5):
        yield from _both_weightings(m.TopKCategoricalAccuracy, _one_hot, k=k)
        yield from _both_weightings(m.SparseTopKCategoricalAccuracy, _sparse, k=k)
    yield from _auc()
    yield _ties()
    yield _accuracy_over_steps()
    yield from _errors()
    yield from _crossentropies()
    yield from _confusion()
    yield from _f_scores()
    yield from _intersections()
    yield from _accuracy_by_shape()
    yield from _lists()
    yield from _auc_of_labels()
    yield from _axes()


def _lists():
    """Metrics whose value is a list of numbers."""
    m = keras.metrics
    yield from _both_weightings(m.F1Score, _one_hot)
    yield from _both_weightings(m.FBetaScore, _one_hot, beta=2.0, threshold=0.2)
    yield from _both_weightings(m.R2Score, _regression, class_aggregation=None, num_regressors=2)
    some = [0.7, 0.2, 0.5]
    # Keras counts evenly spaced thresholds in another way.
    even = [0.0, 0.25, 0.5, 0.75, 1.0]
    for metric in (m.TruePositives, m.TrueNegatives, m.FalsePositives, m.FalseNegatives):
        yield from _both_weightings(metric, _scores, thresholds=some)
    for metric in (m.Precision, m.Recall):
        for thresholds in (some, even, [0.4]):
            yield from _both_weightings(metric, _scores, thresholds=thresholds)
        for arguments in ({"top_k": 2}, {"class_id": 3}):
            yield from _both_weightings(
                metric, _one_hot, CURVE_BATCH_SIZES, thresholds=[0.1, 0.3], **arguments)


def _auc_of_labels():
    m = keras.metrics
    uneven = {"thresholds": [0.1, 0.35, 0.4, 0.8]}
    for curve in ("ROC", "PR", "PRGAIN"):
        yield from _both_weightings(m.AUC, _scores, CURVE_BATCH_SIZES, curve=curve, **uneven)
        for arguments in ({"num_thresholds": 20}, uneven):
            yield from _both_weightings(
                m.AUC, _labels, CURVE_BATCH_SIZES, curve=curve, multi_label=True, **arguments)
    yield from _both_weightings(
        m.AUC, _scores, CURVE_BATCH_SIZES, thresholds=[0.25, 0.5, 0.75])
    for arguments in ({"multi_label": True, "num_labels": 3}, {}, uneven):
        yield from _both_weightings(
            m.AUC, _labels, CURVE_BATCH_SIZES, label_weights=[0.5, 2.0, 1.0],
            summation_method="majoring", **arguments)


def _axes():
    """Crossentropies of classes that are not on the last axis."""
    m = keras.metrics
    yield from _both_weightings(m.CategoricalCrossentropy, _one_hot_columns, axis=1)
    yield from _both_weightings(
        m.CategoricalCrossentropy, _one_hot_columns, axis=-2, label_smoothing=0.1)


def _labels(rng, size):
    labels = rng.integers(0, 2, (size, 3)).astype(np.float32)
    return {"y_true": labels, "y_pred": 0.2 * labels + uniform(rng, size, 3, high=0.8)}


def _one_hot_columns(rng, size):
    """Labels and scores of shape [size, classes, 2]."""
    labels = rng.integers(0, CLASSES, (size, 2))
    scores = uniform(rng, size, CLASSES, 2, low=0.1)
    return {
        "y_true": np.eye(CLASSES, dtype=np.float32)[labels].transpose(0, 2, 1),
        "y_pred": (scores / scores.sum(axis=1, keepdims=True)).round(3),
    }


def _accuracy_by_shape():
    """The name "accuracy", which compile() resolves from the shapes."""
    rng = seeded(331)

    def column(rng, size):
        batch = _sparse(rng, size)
        return {**batch, "y_true": batch["y_true"][:, None]}

    for kind, draw in (("binary", _binary), ("sparse", _sparse), ("column", column),
                       ("one_hot", _one_hot)):
        batches = [draw(rng, size) for size in BATCH_SIZES]
        metric = compile_utils.get_metric("accuracy", **batches[0])
        made = _run(f"accuracy.{kind}", metric, batches)
        yield {**made, "config": {"class_name": "accuracy"}}


def _auc():
    variations = [
        {},
        {"curve": "PR"},
        {"num_thresholds": 10},
    ]
    # Few thresholds. With many, every sample has its own step and the methods
    # agree.
    for method in ("minoring", "majoring"):
        for curve in ("ROC", "PR"):
            variations.append(
                {"summation_method": method, "curve": curve, "num_thresholds": 10}
            )
    for arguments in variations:
        yield from _both_weightings(keras.metrics.AUC, _scores, CURVE_BATCH_SIZES, **arguments)
    yield from _both_weightings(
        keras.metrics.AUC, _logit_scores, CURVE_BATCH_SIZES, from_logits=True
    )


def _ties():
    """Equal scores at the boundary of the top k: all of them count."""
    return _run(
        "SparseTopKCategoricalAccuracy.ties",
        keras.metrics.SparseTopKCategoricalAccuracy(k=3),
        [
            {
                "y_true": np.int32([0, 3, 6, 2]),
                "y_pred": np.float32(
                    [
                        [1, 1, 1, 1, 1, 1, 1],
                        [3, 2, 1, 1, 1, 0, 0],
                        [3, 2, 2, 2, 1, 1, 1],
                        [0, 1, 5, 4, 3, 2, 1],
                    ]
                ),
            }
        ],
    )


def _accuracy_over_steps():
    """Labels of rank two, each with its own weight."""
    rng = seeded(399)
    return _run(
        "SparseCategoricalAccuracy.rank_3",
        keras.metrics.SparseCategoricalAccuracy(),
        [
            {
                "y_true": rng.integers(0, CLASSES, (size, 3), dtype=np.int32),
                "y_pred": normal(rng, size, 3, CLASSES),
                "sample_weight": uniform(rng, size, 3, high=2.0),
            }
            for size in BATCH_SIZES
        ],
    )


def _errors():
    m = keras.metrics
    for metric in (
        m.MeanAbsolutePercentageError,
        m.RootMeanSquaredError,
        m.LogCoshError,
        m.CosineSimilarity,
        m.Hinge,
        m.SquaredHinge,
        m.R2Score,
    ):
        yield from _both_weightings(metric, _regression, CURVE_BATCH_SIZES)
    yield from _both_weightings(
        m.R2Score,
        _regression,
        CURVE_BATCH_SIZES,
        class_aggregation="variance_weighted_average",
        num_regressors=3,
    )
    # The first batch has too few labels for the adjustment.
    yield from _both_weightings(m.R2Score, _regression, num_regressors=9)
    for metric in (m.PearsonCorrelation, m.ConcordanceCorrelation):
        yield from _both_weightings(metric, _series)
        yield from _both_weightings(metric, _columns_of_series, axis=1)
    for metric in (m.MeanSquaredLogarithmicError, m.Poisson):
        yield from _both_weightings(metric, _counts)


def _crossentropies():
    m = keras.metrics
    for metric, draw in (
        (m.KLDivergence, _one_hot),
        (m.CategoricalHinge, _one_hot),
        (m.BinaryCrossentropy, _binary),
        (m.CategoricalCrossentropy, _one_hot),
        (m.SparseCategoricalCrossentropy, _sparse),
    ):
        yield from _both_weightings(metric, draw)
    yield from _both_weightings(
        m.BinaryCrossentropy, _logit_scores, from_logits=True, label_smoothing=0.1
    )
    # Without weights, Keras divides by the number of all labels.
    yield list(_both_weightings(m.SparseCategoricalCrossentropy, _sparse, ignore_class=2))[1]


def _confusion():
    m = keras.metrics
    for metric in (m.TruePositives, m.TrueNegatives, m.FalsePositives, m.FalseNegatives):
        yield from _both_weightings(metric, _scores)
        yield from _both_weightings(metric, _scores, thresholds=0.3)
    for metric in (m.Precision, m.Recall):
        yield from _both_weightings(metric, _scores)
        yield from _both_weightings(metric, _scores, thresholds=0.7)
        for arguments in (
            {"top_k": 2},
            {"class_id": 3},
            {"top_k": 3, "class_id": 1},
            {"top_k": 4, "thresholds": 0.1},
        ):
            yield from _both_weightings(metric, _one_hot, CURVE_BATCH_SIZES, **arguments)
        yield _run(
            f"{metric.__name__}.ties",
            metric(top_k=2),
            [{"y_true": np.eye(4, dtype=np.float32), "y_pred": np.ones((4, 4), np.float32)}],
        )
    for metric, bound in (
        (m.SensitivityAtSpecificity, 0.6),
        (m.SpecificityAtSensitivity, 0.7),
        (m.PrecisionAtRecall, 0.5),
        (m.RecallAtPrecision, 0.8),
    ):

        def made(metric=metric, bound=bound, **arguments):
            return metric(bound, **arguments)

        made.__name__ = metric.__name__
        for arguments in ({}, {"num_thresholds": 1}, {"num_thresholds": 11}):
            yield from _both_weightings(made, _scores, CURVE_BATCH_SIZES, **arguments)
        yield from _both_weightings(made, _one_hot, CURVE_BATCH_SIZES, class_id=2)


def _f_scores():
    m = keras.metrics
    for average in ("micro", "macro", "weighted"):
        yield from _both_weightings(m.F1Score, _one_hot, average=average)
        yield from _both_weightings(
            m.FBetaScore, _one_hot, CURVE_BATCH_SIZES, average=average, beta=2.0, threshold=0.2
        )


def _intersections():
    """Counts are floats: integers, the default of Keras, would truncate weights."""
    m = keras.metrics
    classes = {"num_classes": CLASSES, "dtype": "float32"}
    targets = {"target_class_ids": [1, 4]}
    for metric, draw, arguments in (
        (m.IoU, _segments, classes | targets),
        (m.IoU, _segments, classes | targets | {"ignore_class": 4}),
        (m.IoU, _one_hot, classes | targets | {"sparse_y_true": False, "sparse_y_pred": False}),
        (m.MeanIoU, _segments, classes),
        (m.MeanIoU, _segments, {"num_classes": 5, "dtype": "float32"}),
        (m.MeanIoU, _sparse, classes | {"sparse_y_pred": False}),
        (m.BinaryIoU, _binary, {"dtype": "float32"}),
        (m.BinaryIoU, _binary, {"target_class_ids": [0], "threshold": 0.3, "dtype": "float32"}),
        (m.OneHotIoU, _one_hot, classes | targets),
        (m.OneHotMeanIoU, _one_hot, classes),
        (m.OneHotMeanIoU, _one_hot, classes | {"ignore_class": 0}),
    ):
        yield from _both_weightings(metric, draw, **arguments)


def _values(rng, size):
    return {"values": normal(rng, size)}


def _regression(rng, size):
    return {"y_true": normal(rng, size, 2), "y_pred": normal(rng, size, 2)}


def _series(rng, size):
    return {"y_true": normal(rng, size, 5), "y_pred": normal(rng, size, 5)}


def _columns_of_series(rng, size):
    return {"y_true": normal(rng, size, 4, 2), "y_pred": normal(rng, size, 4, 2)}


def _counts(rng, size):
    return {
        "y_true": rng.integers(0, 5, (size, 2)).astype(np.float32),
        "y_pred": uniform(rng, size, 2, low=0.1, high=4.0),
    }


def _segments(rng, size):
    return {
        "y_true": rng.integers(0, CLASSES, size, dtype=np.int32),
        "y_pred": rng.integers(0, CLASSES, size).astype(np.float32),
    }


def _binary(rng, size):
    return {
        "y_true": rng.integers(0, 2, (size, 1)).astype(np.float32),
        "y_pred": uniform(rng, size, 1),
    }


def _sparse(rng, size):
    """Predictions that are better than chance, like those of a half-trained model."""
    labels = rng.integers(0, CLASSES, size, dtype=np.int32)
    logits = normal(rng, size, CLASSES) + np.eye(CLASSES, dtype=np.float32)[labels]
    return {"y_true": labels, "y_pred": tf.nn.softmax(logits).numpy().round(3)}


def _one_hot(rng, size):
    batch = _sparse(rng, size)
    batch["y_true"] = np.eye(CLASSES, dtype=np.float32)[batch["y_true"]]
    return batch


def _scores(rng, size):
    labels = rng.integers(0, 2, (size, 1)).astype(np.float32)
    return {"y_true": labels, "y_pred": 0.2 * labels + uniform(rng, size, 1, high=0.8)}


def _logit_scores(rng, size):
    batch = _scores(rng, size)
    batch["y_pred"] = 4 * batch["y_pred"] - 2
    return batch


def _both_weightings(metric, draw, batch_sizes=BATCH_SIZES, **arguments):
    traits = [f"{key}={value}" for key, value in arguments.items()]
    for weighted in (False, True):
        # Both cases use the same batches, so that they differ only in the
        # weights.
        rng = seeded(300)
        batches = [draw(rng, size) for size in batch_sizes]
        if weighted:
            for batch, size in zip(batches, batch_sizes):
                batch["sample_weight"] = uniform(rng, size, high=2.0)
        name = ".".join([metric.__name__] + traits + ["weighted"] * weighted)
        yield _run(name, metric(**arguments), batches)


def _run(name, metric, batches):
    inputs = {}
    results = []
    for index, batch in enumerate(batches):
        metric.update_state(**batch)
        results.append(np.float32(metric.result()))
        inputs.update({f"{key}_{index}": value for key, value in batch.items()})
    config = keras_config(metric)
    if config.get("label_weights") is not None:
        config["label_weights"] = [float(weight) for weight in config["label_weights"]]
    return case(name, config, inputs, {"result": np.stack(results)})
