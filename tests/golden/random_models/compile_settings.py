"""Optimizers with their schedules, and losses and metrics with labels for them."""

import keras
import numpy as np

O = keras.optimizers
K = keras.losses
M = keras.metrics

# Tasks: what the labels of an output are. Class labels are class numbers, or rows of ones and
# zeros.
REGRESSION = "regression"
POSITIVE = "positive"
CLASS_NUMBERS = "class_numbers"
ONE_HOT = "one_hot"
BINARY = "binary"
SIGNS = "signs"
TASKS = (REGRESSION, REGRESSION, POSITIVE, CLASS_NUMBERS, ONE_HOT, BINARY, SIGNS)


def schedule(draw, rate):
    kinds = O.schedules
    return draw.of(
        lambda: kinds.CosineDecay(rate, draw.integer(3, 9), alpha=draw.number(0, 0.5)),
        lambda: kinds.CosineDecay(rate / 4, 8, warmup_target=rate, warmup_steps=3),
        lambda: kinds.CosineDecayRestarts(rate, 2, t_mul=1.5, m_mul=0.9, alpha=0.1),
        lambda: kinds.ExponentialDecay(rate, 2, 0.8, staircase=draw.chance(0.5)),
        lambda: kinds.InverseTimeDecay(rate, 2, 0.5, staircase=draw.chance(0.5)),
        lambda: kinds.PiecewiseConstantDecay([1, 3], [rate, rate / 2, rate / 4]),
        lambda: kinds.PolynomialDecay(rate, draw.integer(2, 6), rate / 10, power=2.0,
                                      cycle=draw.chance(0.5)),
    )()


def _common(draw, accumulates):
    more = draw.some({"weight_decay": lambda: draw.number(0.001, 0.05)}, 0.25)
    more |= draw.of({}, {}, {"clipnorm": draw.number(0.2, 1)},
                    {"clipvalue": draw.number(0.05, 0.5)},
                    {"global_clipnorm": draw.number(0.2, 1)})
    if draw.chance(0.2):
        more |= {"use_ema": True, "ema_momentum": draw.number(0.5, 0.95)}
        more |= draw.some({"ema_overwrite_frequency": lambda: 2}, 0.5)
    if accumulates and draw.chance(0.2):
        more["gradient_accumulation_steps"] = 2
    return more


def _gradient_descent(draw, rate):
    momentum = draw.of(0.0, 0.9, 0.5)
    return O.SGD(rate, momentum=momentum, nesterov=bool(momentum) and draw.chance(0.4),
                 **_common(draw, True))


def optimizer(draw, is_robust):
    """Draws an optimizer. If `is_robust`, its updates are proportional to the gradients."""
    rate = draw.number(0.005, 0.05)
    if draw.chance(0.35):
        rate = schedule(draw, rate)
    if is_robust:
        return _gradient_descent(draw, rate)
    beta = {"beta_1": draw.number(0.8, 0.95), "beta_2": draw.number(0.9, 0.999)}
    # With the default, 1e-7, gradients that consist of rounding errors would cause steps.
    epsilon = draw.of(1e-3, 1e-4)
    common = _common(draw, True)
    made = draw.of(
        lambda: _gradient_descent(draw, rate),
        lambda: O.RMSprop(rate, rho=draw.number(0.7, 0.95), momentum=draw.of(0.0, 0.5),
                          centered=draw.chance(0.4), epsilon=epsilon, **common),
        lambda: O.Adam(rate, amsgrad=draw.chance(0.4), epsilon=epsilon, **beta,
                       **common),
        lambda: O.AdamW(rate, epsilon=epsilon, **beta, **{"weight_decay": 0.01, **common}),
        lambda: O.Adadelta(rate, rho=draw.number(0.8, 0.95), epsilon=epsilon, **common),
        lambda: O.Adagrad(rate, initial_accumulator_value=draw.number(0.1, 0.5), **common),
        lambda: O.Adamax(rate, epsilon=epsilon, **beta, **common),
        lambda: O.Nadam(rate, epsilon=epsilon, **beta, **common),
        lambda: O.Ftrl(rate, learning_rate_power=draw.of(-0.5, -0.7),
                       l1_regularization_strength=draw.of(0.0, 0.01),
                       l2_regularization_strength=draw.of(0.0, 0.1),
                       l2_shrinkage_regularization_strength=draw.of(0.0, 0.05),
                       beta=draw.of(0.0, 0.1), **common),
        lambda: O.Lion(rate, **beta, **common),
        lambda: O.Lamb(rate, epsilon=epsilon, **beta, **common),
        lambda: O.Adafactor(rate, relative_step=draw.chance(0.5), **common),
        lambda: O.Muon(rate, nesterov=draw.chance(0.5), **common),
    )()
    if draw.chance(0.1):
        made = O.LossScaleOptimizer(made, initial_scale=2.0**10, dynamic_growth_steps=2)
    return made


def activation_of(draw, task):
    """Returns the activation of the last layer, and whether the loss takes logits."""
    if task == POSITIVE:
        return draw.of("softplus", "exponential"), False
    if task in (CLASS_NUMBERS, ONE_HOT, BINARY) and draw.chance(0.6):
        return ("sigmoid" if task == BINARY else "softmax"), False
    return draw.of("linear", "linear", "tanh") if task == REGRESSION else "linear", True


def labels(draw, task, count, shape):
    """Returns labels for outputs of this shape, which does not include the batch."""
    if task == REGRESSION:
        return draw.normal(count, *shape)
    if task == POSITIVE:
        return np.abs(draw.normal(count, *shape)) + np.float32(0.25)
    if task == CLASS_NUMBERS:
        return draw.rng.integers(0, shape[-1], (count, *shape[:-1])).astype(np.int32)
    if task == ONE_HOT:
        numbers = draw.rng.integers(0, shape[-1], (count, *shape[:-1]))
        return np.eye(shape[-1], dtype=np.float32)[numbers]
    zeros_and_ones = draw.rng.integers(0, 2, (count, *shape)).astype(np.float32)
    return zeros_and_ones if task == BINARY else 2 * zeros_and_ones - 1


def loss(draw, task, logits, is_alone):
    """Returns a loss that fits the task, as an object or as a name."""
    # Muster has no reduction "mean_with_sample_weight".
    smooth = draw.of(0.0, 0.0, 0.1)
    both = {"from_logits": logits}
    reduction = draw.of({}, {}, {"reduction": "sum"})
    if not is_alone:
        reduction = {}  # Muster adds either means or sums.
    return draw.of(*{
        REGRESSION: (
            lambda: "mse", lambda: "mean_absolute_error", lambda: "cosine_similarity",
            lambda: K.MeanSquaredError(**reduction), lambda: K.MeanAbsoluteError(**reduction),
            lambda: K.Huber(draw.number(0.3, 1.5)), lambda: K.LogCosh(**reduction),
            lambda: K.CosineSimilarity(axis=-1),
        ),
        POSITIVE: (
            lambda: "mape", lambda: "msle", lambda: K.Poisson(**reduction),
            lambda: K.MeanSquaredLogarithmicError(), lambda: K.MeanAbsolutePercentageError(),
            lambda: K.KLDivergence(),
        ),
        CLASS_NUMBERS: (
            lambda: K.SparseCategoricalCrossentropy(**both, **reduction),
            lambda: K.SparseCategoricalCrossentropy(**both, ignore_class=0),
            *(() if logits else (
                lambda: "sparse_categorical_crossentropy",
                lambda: K.CategoricalGeneralizedCrossEntropy(draw.number(0.2, 0.8)))),
        ),
        ONE_HOT: (
            lambda: K.CategoricalCrossentropy(**both, label_smoothing=smooth, **reduction),
            lambda: K.CategoricalFocalCrossentropy(**both, gamma=draw.number(1, 3),
                                                   label_smoothing=smooth),
            lambda: "categorical_hinge",
            *(() if logits else (lambda: K.KLDivergence(),
                                 # Replicas compute overlaps separately, which differs from one
                                 # overlap over all examples.
                                 lambda: K.Dice(axis=-1), lambda: K.Tversky(0.3, 0.7, axis=-1),
                                 lambda: "categorical_crossentropy")),
        ),
        BINARY: (
            lambda: K.BinaryCrossentropy(**both, label_smoothing=smooth, **reduction),
            lambda: K.BinaryFocalCrossentropy(**both, gamma=draw.number(1, 3),
                                              apply_class_balancing=draw.chance(0.5)),
            *(() if logits else (lambda: "binary_crossentropy", lambda: K.Dice(axis=-1))),
        ),
        SIGNS: (lambda: "hinge", lambda: K.SquaredHinge(**reduction), lambda: "mse"),
    }[task])()


def metrics(draw, task, logits, shape):
    """Returns up to three metrics that take labels and outputs of this kind."""
    classes = shape[-1]
    kinds = {
        REGRESSION: [
            lambda: "mae", lambda: M.MeanSquaredError(name="squares"),
            lambda: M.RootMeanSquaredError(), lambda: M.CosineSimilarity(),
            lambda: M.LogCoshError(), lambda: "mape",
            # Replicas compute correlations along the batch separately.
            lambda: M.PearsonCorrelation(), lambda: M.ConcordanceCorrelation(),
            *([lambda: M.R2Score(class_aggregation=draw.of("uniform_average",
                                                           "variance_weighted_average"))]
              if len(shape) == 1 else []),
        ],
        POSITIVE: [lambda: M.MeanAbsolutePercentageError(), lambda: M.Poisson(),
                   lambda: M.MeanSquaredLogarithmicError(), lambda: "kl_divergence"],
        CLASS_NUMBERS: [
            lambda: "accuracy", lambda: M.SparseCategoricalAccuracy(),
            lambda: M.SparseCategoricalCrossentropy(from_logits=logits),
            lambda: M.SparseTopKCategoricalAccuracy(k=min(2, classes)),
        ],
        ONE_HOT: [
            lambda: "accuracy", lambda: M.CategoricalAccuracy(),
            lambda: M.CategoricalCrossentropy(from_logits=logits, label_smoothing=0.1),
            lambda: M.TopKCategoricalAccuracy(k=min(2, classes)), lambda: M.CategoricalHinge(),
            lambda: M.OneHotMeanIoU(classes), lambda: M.OneHotIoU(classes, [0]),
            *([] if logits else [lambda: M.KLDivergence(), lambda: M.Precision(class_id=0),
                                 lambda: M.Recall(top_k=1)]),
            *([lambda: M.F1Score(average="macro"),
               lambda: M.FBetaScore(average=draw.of("micro", "weighted"), beta=2.0)]
              if len(shape) == 1 and not logits else []),
        ],
        BINARY: [
            lambda: "accuracy", lambda: M.BinaryAccuracy(threshold=draw.number(0.3, 0.6)),
            lambda: M.BinaryCrossentropy(from_logits=logits),
            *([] if logits else [
                lambda: M.AUC(num_thresholds=20, curve=draw.of("ROC", "PR")),
                lambda: M.Precision(), lambda: M.Recall(thresholds=0.4),
                lambda: M.TruePositives(), lambda: M.FalsePositives(), lambda: M.TrueNegatives(),
                lambda: M.FalseNegatives(), lambda: M.PrecisionAtRecall(0.5, num_thresholds=20),
                lambda: M.SensitivityAtSpecificity(0.5, num_thresholds=20),
                lambda: M.BinaryIoU([0, 1], threshold=0.5),
            ]),
        ],
        SIGNS: [lambda: M.Hinge(), lambda: M.SquaredHinge(), lambda: "hinge"],
    }[task]
    chosen = draw.rng.permutation(len(kinds))[:draw.integer(0, 3)]
    return [kinds[i]() for i in chosen]
