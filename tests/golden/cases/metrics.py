"""metrics.json: metrics over several batches of different sizes.

inputs:  for batch i: y_true_<i> and y_pred_<i> (for Mean: values_<i>), and optionally
         sample_weight_<i>.
outputs: result [batches], the value of the metric after each batch.
"""

import keras
import numpy as np
import tensorflow as tf

from cases.golden_format import case, keras_config, normal, seeded, uniform

# A curve needs more samples than a mean.
BATCH_SIZES = (5, 1, 8, 3)
CURVE_BATCH_SIZES = (15, 2, 24, 9)
CLASSES = 7


def cases():
    m = keras.metrics
    yield from _both_weightings(m.Mean, _values)
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
    """Equal scores at the boundary of the top k: all of them are in."""
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


def _values(rng, size):
    return {"values": normal(rng, size)}


def _regression(rng, size):
    return {"y_true": normal(rng, size, 2), "y_pred": normal(rng, size, 2)}


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
    return case(name, keras_config(metric), inputs, {"result": np.stack(results)})
