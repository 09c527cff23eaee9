"""Losses and metrics of the user's own, as programs. Needs Keras on JAX."""

import jax
import numpy as np

import keras
from muster.program_export import array_spec, encoded_program

# Rows of the batches with which additivity is tested.
_TEST_ROWS = 3


def _pairs(label, output, sizes, *more):
    """Returns the arguments (labels, predictions, ...) for each batch size."""
    return [[array_spec((size, *label[0]), label[1]), array_spec((size, *output[0]), output[1]),
             *(array_spec((size,), dtype) for dtype in more)] for size in sizes]


def kind_of_loss(loss_of, batch, is_random=False):
    """Returns if a loss is a "mean" or a "sum" over examples, or "neither".

    Args:
      loss_of: (arrays of a batch) -> number.
      batch: the types of the arrays.
      is_random: True to compare roughly.
    """
    generator = np.random.default_rng(0)
    values = [random_array(spec, generator) for spec in batch]
    once = float(loss_of(values))
    twice = float(loss_of([jax.numpy.concatenate([one, one]) for one in values]))
    tolerance = 0.3 if is_random else 1e-3
    if np.isclose(twice, once, rtol=tolerance):
        return "mean"
    return "sum" if np.isclose(twice, 2 * once, rtol=tolerance) else "neither"


def export_loss(name, loss, label, output, sizes):
    """Returns the program of the losses of examples, and their reduction.

    Args:
      loss: a keras.losses.Loss.
      label, output: (shape of an example, dtype) of labels and predictions.
      sizes: the batch sizes that occur.

    Raises:
      ValueError: the loss overrides the reduction.
    """
    if type(loss).__call__ is not keras.losses.Loss.__call__:
        raise ValueError(f"loss {name} overrides __call__(), which includes the reduction; "
                         "override call() in place of it")
    dtype = str(loss.dtype)

    def call(y_true, y_pred):
        return jax.numpy.asarray(loss.call(y_true, y_pred))

    example = _pairs((label[0], dtype), (output[0], dtype), [_TEST_ROWS])[0]
    is_number = jax.eval_shape(call, *example).ndim == 0
    is_sum = is_number and kind_of_loss(lambda values: call(*values), example) == "sum"

    def of_examples(y_true, y_pred):
        losses = call(y_true, y_pred)
        if is_sum:
            losses = losses / y_pred.shape[0]
        # One number for the batch is that of each example.
        return (jax.numpy.broadcast_to(losses, y_pred.shape[:1]) if is_number else losses,)

    arguments = _pairs((label[0], dtype), (output[0], dtype), sizes)
    reduction = {"mean": "sum_over_batch_size"}.get(loss.reduction, loss.reduction)
    return (encoded_program(name, of_examples, arguments, [True, True], [1], 1),
            "sum" if is_sum else reduction)


def random_array(spec, generator):
    """Returns numbers that are plausible as features, probabilities and class numbers."""
    if np.issubdtype(spec.dtype, np.floating):
        return jax.numpy.asarray(generator.uniform(0.1, 0.9, spec.shape), spec.dtype)
    return jax.numpy.asarray(generator.integers(0, 2, spec.shape), spec.dtype)


def check_adds_up(what, update, zeros, batches):
    """Raises ValueError unless updates add numbers to the state of metrics.

    Args:
      update: (state, arguments) -> state; states are lists of arrays.
      zeros: the state before the first update.
      batches: the types of the arguments of two updates.
    """
    generator = np.random.default_rng(0)
    first, second = ([random_array(spec, generator) for spec in batch] for batch in batches)
    twice = update(update(zeros, first), second)
    for one, two, both, zero in zip(update(zeros, first), update(zeros, second), twice, zeros):
        if not np.allclose(np.asarray(both, "float64") - np.asarray(zero, "float64"),
                           np.asarray(one, "float64") + np.asarray(two, "float64"), rtol=1e-4,
                           atol=1e-4, equal_nan=True) or np.any(np.asarray(zero)):
            raise ValueError(f"{what}: the variables are no sums over examples, so the values of "
                             "several workers cannot be joined; keep sums and counts, and divide "
                             "in result()")


def divided(statistics, variables):
    """Returns (variable, value) of variables whose elements a vector has one after another."""
    begin, values = 0, []
    for variable in variables:
        end = begin + int(np.prod(variable.shape))
        value = statistics[begin:end].reshape(tuple(variable.shape))
        values.append((variable, value.astype(variable.dtype)))
        begin = end
    return values


class _MetricFunctions:
    """A metric as functions without state."""

    def __init__(self, metric):
        self._metric = metric
        self._variables = list(metric.variables)

    def zeros(self):
        return [jax.numpy.zeros(tuple(one.shape), one.dtype) for one in self._variables]

    def statistics(self, *arguments):
        """Returns the change of the variables from zeros, as a vector."""
        return jax.numpy.concatenate(
            [one.astype("float32").ravel() for one in self.updated(self.zeros(), *arguments)])

    def updated(self, values, y_true, y_pred, sample_weight=None):
        mapping = list(zip(self._variables, values))
        options = {} if sample_weight is None else {"sample_weight": sample_weight}
        with keras.StatelessScope(state_mapping=mapping) as scope:
            self._metric.update_state(y_true, y_pred, **options)
        return [jax.numpy.asarray(scope.get_current_value(one)) for one in self._variables]

    def result(self, statistics):
        with keras.StatelessScope(state_mapping=divided(statistics, self._variables)):
            return self._metric.result()

    def size(self):
        return sum(int(np.prod(one.shape)) for one in self._variables)


def export_metric(metric, label, output, sizes, takes_weights):
    """Returns the config of a ProgramMetric, without its name.

    Args:
      metric: a keras.metrics.Metric.
      label, output, sizes: as for export_loss().
      takes_weights: True if the metric gets sample weights.

    Raises:
      ValueError: the metric's state is no sum, or its result no number or list.
    """
    arguments = _pairs(label, output, sizes)
    keras.src.backend.compute_output_spec(  # Creates the variables.
        metric.update_state, *(keras.KerasTensor(one.shape, str(one.dtype))
                               for one in arguments[0]))
    functions = _MetricFunctions(metric)
    check_adds_up(f"metric {metric.name}", lambda state, values: functions.updated(state, *values),
                  functions.zeros(), _pairs(label, output, [_TEST_ROWS]) * 2)
    result = jax.eval_shape(functions.result, array_spec((functions.size(),), "float32"))
    if not hasattr(result, "shape") or len(result.shape) > 1:
        raise ValueError(f"metric {metric.name}: result() returns {result}; expected a number or "
                         "a list of numbers")

    def program(function, argument_lists, varies):
        return encoded_program(metric.name, lambda *values: (function(*values),),
                               argument_lists, varies)

    fields = {
        "statistics_program": program(functions.statistics, arguments, [True, True]),
        "result_program": program(
            lambda sums: jax.numpy.asarray(functions.result(sums)).astype("float32"),
            [[array_spec((functions.size(),), "float32")]], [False]),
    }
    if takes_weights:
        fields["weighted_program"] = program(
            functions.statistics, _pairs(label, output, sizes, "float32"), [True, True, True])
    return fields
