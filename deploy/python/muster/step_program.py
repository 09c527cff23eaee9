"""The step of a whole model as a program: for models that are no Sequential or functional ones.

The program computes the loss and the changes of all metrics. Its only output has a row for each
example: the loss, then the changes divided by the number of examples. So the mean of the first
column is the loss, and the sums of the others add up over batches, replicas and workers. Labels
and sample weights are inputs like the features.
"""

import contextlib
import warnings

import jax
import numpy as np

import keras
from muster.program_copy import compile_for_cluster
from muster.program_export import (CalledPart, Part, array_spec, encoded_program, export_part,
                                   output_types, seed_variables)
from muster.step_tables import Tables
from muster.program_losses import check_adds_up, divided, kind_of_loss
from muster.programs import Program, ProgramLoss, ProgramMetric, build_step
from muster.structure import types_in, with_values


class StepPart(Part):
    """The step of a model.

    Args:
      model: a compiled and built model.
      example: (x, y, sample weight), structures of (shape of an example, dtype); y and the
        weight may be None.
    """

    def __init__(self, model, example):
        specs = [((None, *shape), dtype) for shape, dtype in types_in(example)]
        super().__init__(model.name, model, specs, [False] * len(specs))
        self._example = example
        self.tables = None
        self.loss_kind = "mean"
        self._loss, self._penalties = None, []
        build_step(model, example)
        self._metric_variables = [variable for metric in model.metrics
                                  if metric is not model._loss_tracker
                                  for variable in metric.variables]

    def look_up_outside(self):
        """Takes the rows of embeddings as inputs, as far as this is possible."""
        self.tables = Tables(self.name, self.operation, self.inputs(3), self._weights(),
                             self._run)
        for spec, needs_gradient in self.tables.rows():
            self.add_input(spec, needs_gradient)

    def variables(self):
        return self._without_tables(super().variables())

    def trainable_variables(self):
        return self._without_tables(super().trainable_variables())

    def _without_tables(self, variables):
        tables = set() if self.tables is None else {id(one) for one in self.tables.variables()}
        return [one for one in variables if id(one) not in tables]

    def state(self):
        return [(one, jax.numpy.zeros(tuple(one.shape), one.dtype))
                for one in self._metric_variables]

    def _weights(self):
        # Keras looks for what regularizers take in the scope only.
        return [(one, one.value) for one in self.operation.variables]

    def losses(self):
        # Penalties are added once to a sum over replicas, and are part of a mean.
        return self._penalties if self.loss_kind == "sum" else []

    def computes_loss(self):
        # float16 needs a loss that is scaled before it is differentiated.
        policies = {layer.compute_dtype for layer in self.operation._flatten_layers()}
        return "float16" not in policies and self.loss_kind != "sum"

    def call(self, values, training, scope):
        count = len(values) - len(self.tables.rows())
        with self.tables.looked_up(values[count:]):
            self._run(values[:count], training)
        count = jax.tree.leaves(values)[0].shape[0]
        if self.loss_kind == "sum":
            loss = self._loss / count
        else:
            loss = sum(self._penalties, start=self._loss)
        changes = [jax.numpy.asarray(scope.get_current_value(one)).astype("float32").ravel()
                   for one in self._metric_variables]
        row = jax.numpy.concatenate([loss.astype("float32").reshape(1),
                                     *(change / count for change in changes)])
        return [jax.numpy.broadcast_to(row, (count, row.shape[0]))]

    def _run(self, values, training):
        """Runs the step. Returns its loss and predictions."""
        model = self.operation
        x, y, weight = with_values(self._example, values)
        takes_training = getattr(model, "_call_has_training_arg", False)
        y_pred = model(x, training=training) if takes_training else model(x)
        # What layers add is told apart, unless the model computes its loss by itself.
        self._penalties = []
        if type(model).compute_loss is not keras.Model.compute_loss:
            loss = model._compute_loss(x, y, y_pred, weight, training=training)
        else:
            loss = None if model._compile_loss is None else model._compile_loss(y, y_pred, weight)
            self._penalties = list(model.losses)
        self._loss = jax.numpy.asarray(0.0 if loss is None else loss, "float32")
        model.compute_metrics(x, y, y_pred, weight)
        return [self._loss, *jax.tree.leaves(y_pred)]

    def find_loss_kind(self):
        """Finds out if the loss is a mean or a sum over examples, or "neither"."""
        seeds = seed_variables(self.operation)

        def loss_of(values, seed=0):
            state = [*self._weights(), *self.state(),
                     *((one, np.array([seed, 0], "uint32")) for one in seeds)]
            with keras.StatelessScope(state_mapping=state, collect_losses=True):
                self._run(values, False)
            return float(self._loss)

        ones = [jax.numpy.ones(spec.shape, spec.dtype) for spec in self.inputs(3)]
        self.loss_kind = kind_of_loss(loss_of, self.inputs(3),
                                      is_random=loss_of(ones) != loss_of(ones, seed=1))

    def updated_metrics(self, metrics, values):
        """Returns the values of the metrics' variables after a batch."""
        mapping = [*self._weights(), *zip(self._metric_variables, metrics)]
        with keras.StatelessScope(state_mapping=mapping, collect_losses=True) as scope:
            self._run(values, False)
        return [jax.numpy.asarray(scope.get_current_value(one)) for one in self._metric_variables]

    def results(self, statistics):
        """Returns {name: value} of the metrics from the sums of the changes, a vector."""
        with keras.StatelessScope(state_mapping=divided(statistics, self._metric_variables)):
            results = self.operation.get_metrics_result()
        flat = {}
        for name, value in results.items():  # Some metrics have several values.
            flat.update(value if isinstance(value, dict) else {name: value})
        return {name: value for name, value in flat.items() if name != "loss"}

    def statistic_count(self):
        return sum(int(np.prod(one.shape)) for one in self._metric_variables)


def _measures(part):
    """Returns (ProgramLoss, list of ProgramMetric) of the columns of the program."""
    vector = array_spec((part.statistic_count(),), "float32")
    metrics = []
    for name, value in jax.eval_shape(part.results, vector).items():
        if len(value.shape) > 1:
            raise ValueError(f"metric {name} has the shape {value.shape}; expected a number or a "
                             "list of numbers")
        metrics.append(ProgramMetric(name, {
            "statistics_program": "",
            "result_program": encoded_program(
                name, lambda sums, name=name: (part.results(sums)[name].astype("float32"),),
                [[vector]], [False]),
        }))
    reduction = "sum" if part.loss_kind == "sum" else "sum_over_batch_size"
    return ProgramLoss("loss", "", reduction), metrics


def _inputs(types):
    return [keras.Input(shape, dtype=str(array_spec((), dtype).dtype), name=f"input_{index}")
            for index, (shape, dtype) in enumerate(types)]


def prediction_of(model, types, sizes):
    """Returns a functional model, not compiled, that has the call of a built model as a program.

    Args:
      types: the inputs, a structure of (shape of an example, dtype).
      sizes: the batch sizes that occur.

    Raises:
      ValueError: the model cannot be exported; says why.
    """
    leaves = types_in(types)
    options = {"training": False} if getattr(model, "_call_has_training_arg", False) else {}
    part = CalledPart(model.name, model, [((None, *shape), dtype) for shape, dtype in leaves],
                      [False] * len(leaves),
                      lambda values, training: model(with_values(types, values), **options))
    fields, weights = export_part(part, sizes, sizes)
    outputs = [keras.KerasTensor(shape, dtype) for shape, dtype in output_types(fields)]
    program = Program(model.name, fields, weights, outputs[0] if len(outputs) == 1 else outputs)
    inputs = _inputs(leaves)
    return keras.Model(inputs, program(*inputs), name=model.name)


@contextlib.contextmanager
def copy_of(model, example, train_sizes, inference_sizes):
    """Within the context, there is a compiled functional model that has the step as a program.

    Its inputs are the leaves of `example`, and its labels are not used. Its other layers are
    embeddings of the model.

    Args:
      as for StepPart and export_part().

    Raises:
      ValueError: the model cannot be exported; says why.
    """
    part = StepPart(model, example)
    part.find_loss_kind()
    check_adds_up(f"the metrics of {model.name}", part.updated_metrics,
                  [value for _, value in part.state()], [part.inputs(3)] * 2)
    part.look_up_outside()
    fields, weights = export_part(part, train_sizes, inference_sizes)
    inputs = _inputs(types_in(example))
    program = Program(model.name, fields, weights,
                      keras.KerasTensor((None, 1 + part.statistic_count()), "float32"))
    sizes = sorted({*train_sizes, *inference_sizes}, reverse=True)
    with warnings.catch_warnings(), part.tables.called(inputs, sizes) as rows:
        # The program computes masks.
        warnings.filterwarnings("ignore", message=".*type Program.* mask")
        copy = keras.Model(inputs, program(*inputs, *rows), name=model.name)
        loss, metrics = _measures(part)
        compile_for_cluster(copy, model, {"optimizer": model._compile_config.config["optimizer"],
                                          "loss": loss, "metrics": metrics})
        if part.loss_kind == "neither":
            copy.remark = (f"the loss of {model.name} is neither a mean nor a sum over examples; "
                           "synchronous workers minimize the mean of their losses")
        yield copy
