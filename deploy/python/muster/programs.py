"""What of a model Muster does not know, and the classes that take its place in files.

Unknown parts of a model are layers of the user's own, operations of keras.ops, and subclassed
models. JAX exports them as programs. In the file that the cluster reads, the classes here have
the programs.
"""

import builtins
import numbers

import keras
from muster.structure import types_in, with_values

_STEPS = ("train_step", "test_step")
# Layers of Keras whose function is Python code.
_UNKNOWN_LAYERS = frozenset({"FlaxLayer", "JaxLayer", "Lambda"})
# Operations of keras.ops that a layer of Muster computes, as keras_operations.cc of the runtime
# has them: on a tensor and a number, on tensors of one shape, and on one tensor.
_OPERATIONS_WITH_NUMBERS = frozenset({"Add", "Subtract", "Multiply", "Divide", "TrueDivide"})
_OPERATIONS_ON_TENSORS = frozenset({"Add", "Maximum", "Minimum", "Multiply", "Subtract"})
_OPERATIONS_ON_A_TENSOR = frozenset({
    "HardSigmoid", "HardSilu", "HardTanh", "LogSigmoid", "Negative", "Relu", "Relu6", "Selu",
    "Sigmoid", "Silu", "Softmax", "Softplus", "Softsign", "Tanh"})


def is_of_keras(thing):
    return type(thing).__module__.split(".")[0] == "keras"


def _is_structure(operation):
    """True for a Sequential or functional model that computes what its layers compute."""
    if isinstance(operation, keras.Sequential):
        base = keras.Sequential
    elif hasattr(operation, "_nodes_by_depth"):
        base = keras.src.models.functional.Functional
    else:
        return False
    return all(getattr(type(operation), name) is getattr(base, name)
               for name in ("call", "compute_loss", "compute_metrics", "metrics", *_STEPS))


def functional_of(operation):
    """Returns the functional model of a Sequential or functional model, otherwise None."""
    if not _is_structure(operation):
        return None
    return operation._functional if isinstance(operation, keras.Sequential) else operation


def nodes_of(functional):
    """Returns the calls in a functional model, without those of inputs, from the outputs on."""
    return [node for _, nodes in sorted(functional._nodes_by_depth.items()) for node in nodes
            if not isinstance(node.operation, keras.layers.InputLayer)]


def is_known_operation(node):
    """True for the call of an operation of keras.ops that a layer of Muster computes."""
    kind, arguments = type(node.operation), node.arguments
    tensors, count = arguments.keras_tensors, len(arguments.args)
    if not kind.__module__.startswith("keras.src.ops") or arguments.kwargs:
        return False
    # A layer would pass a mask on, and cast its inputs.
    if any(getattr(one, "_keras_mask", None) is not None or one.dtype != "float32"
           for one in tensors):
        return False
    if kind.__name__ == "Concatenate":
        return count == 1
    if count == 2 and len(tensors) == 1:
        number = arguments.args[1 if arguments.args[0] is tensors[0] else 0]
        divides_number = "Divide" in kind.__name__ and number is arguments.args[0]
        return (kind.__name__ in _OPERATIONS_WITH_NUMBERS and isinstance(number, numbers.Real)
                and not isinstance(number, bool) and not divides_number)
    if count == 2 and len(tensors) == 2:
        shapes = [tuple(one.shape) for one in arguments.args]
        return kind.__name__ in _OPERATIONS_ON_TENSORS and shapes[0] == shapes[1]
    if kind.__name__ == "Softmax" and node.operation.axis in (None, 0, -len(tensors[0].shape)):
        return False  # Over the examples of the batch.
    return count == 1 and len(tensors) == 1 and kind.__name__ in _OPERATIONS_ON_A_TENSOR


def _is_known_value(value):
    """True for an attribute of a layer that the cluster can have: no code of the user's own."""
    if isinstance(value, (keras.layers.Layer, type)) or not callable(value):
        return True  # Layers inside are looked at separately.
    if hasattr(value, "get_config"):
        return is_of_keras(value)
    return _is_known_function(value)


def is_known(operation):
    """True if Muster has the layer, with everything that it consists of."""
    if not is_of_keras(operation) or type(operation).__name__ in _UNKNOWN_LAYERS:
        return False
    if getattr(operation, "lora_enabled", False):
        return False
    if not isinstance(operation, keras.layers.Layer):
        return True
    # Methods that Keras has wrapped are attributes, too.
    values = [value for name, value in vars(operation).items()
              if not name.startswith("_") and not hasattr(type(operation), name)]
    inner = operation._flatten_layers(include_self=False, recursive=False)
    return all(map(_is_known_value, values)) and all(map(is_known, inner))


class Program(keras.layers.Layer):
    """The place of a part in a model. Computes nothing in Python.

    Args:
      fields: the config of the layer, of program_export.export_part().
      weights: the variables of the part, in the order of the fields' weights.
      outputs: the part's outputs: a KerasTensor or a structure of them.
    """

    def __init__(self, name, fields, weights, outputs):
        super().__init__(name=name)
        self._fields = fields
        # In a function, so that Keras does not take the variables for the layer's own.
        self._part_weights = lambda: weights
        self._outputs = lambda: outputs
        self.built = True

    def call(self, *inputs):
        raise NotImplementedError("programs run in the cluster")

    def compute_output_spec(self, *inputs):
        return keras.tree.map_structure(
            lambda output: keras.KerasTensor(output.shape, output.dtype), self._outputs())

    def get_config(self):
        return {**super().get_config(), **self._fields}

    def save_own_variables(self, store):
        for index, variable in enumerate(self._part_weights()):
            store[str(index)] = variable


class ProgramLoss(keras.losses.Loss):
    """The place of a loss of the user's own. Computes nothing in Python."""

    def __init__(self, name, program, reduction):
        super().__init__(name=name, reduction=reduction)
        self._program = program

    def call(self, y_true, y_pred):
        raise NotImplementedError("programs run in the cluster")

    def get_config(self):
        return {**super().get_config(), "program": self._program}


class ProgramMetric(keras.metrics.Metric):
    """The place of a metric of the user's own. Computes nothing in Python."""

    def __init__(self, name, fields):
        super().__init__(name=name)
        self._fields = fields

    def update_state(self, *arguments, **options):
        raise NotImplementedError("programs run in the cluster")

    def result(self):
        raise NotImplementedError("programs run in the cluster")

    def get_config(self):
        return {**super().get_config(), **self._fields}


@keras.saving.register_keras_serializable("muster")
class ProgramOptimizer(keras.optimizers.Optimizer):
    """The place of an optimizer of the user's own. Computes nothing in Python.

    Args:
      fields: as proto::Optimizer::Program of the cluster has them.

    Attributes:
      slots: {name: the variables of a slot}, once it is built.
    """

    def __init__(self, fields, **options):
        super().__init__(**options)
        self._fields = fields
        self.slots = {}

    def build(self, variables):
        if self.built:
            return
        super().build(variables)
        # In the order of the cluster's files.
        self.slots = {name: self.add_optimizer_variables(variables, name)
                      for name in self._fields["slots"]}

    def update_step(self, gradient, variable, learning_rate):
        raise NotImplementedError("programs run in the cluster")

    def get_config(self):
        return {**super().get_config(), **self._fields}

    @classmethod
    def from_config(cls, config, custom_objects=None):
        fields = ("slots", "initial_values", "slots_starting_as_variable", "programs")
        others = {name: value for name, value in config.items() if name not in fields}
        return cls({name: config[name] for name in fields}, **others)


@keras.saving.register_keras_serializable("muster")
class ProgramSchedule(keras.optimizers.schedules.LearningRateSchedule):
    """The place of a schedule of the user's own. Computes nothing in Python."""

    def __init__(self, program):
        super().__init__()
        self._program = program

    def __call__(self, step):
        raise NotImplementedError("programs run in the cluster")

    def get_config(self):
        return {"program": self._program}


def inner_optimizer(optimizer):
    """Returns the optimizer in a LossScaleOptimizer, or the optimizer itself."""
    return getattr(optimizer, "inner_optimizer", optimizer)


def is_known_optimizer(optimizer):
    """True for an optimizer whose updates Muster computes."""
    optimizer = inner_optimizer(optimizer)
    excludes = optimizer.weight_decay and any(
        getattr(optimizer, "_exclude_from_weight_decay" + suffix, None)
        for suffix in ("", "_pattern"))
    return is_of_keras(optimizer) and not excludes


def is_known_schedule(optimizer):
    """True if the learning rate of an optimizer is a number or a schedule that Muster has."""
    rate = inner_optimizer(optimizer)._learning_rate
    return not isinstance(rate, keras.optimizers.schedules.LearningRateSchedule) or (
        is_of_keras(rate))


def unknown_optimizer(model):
    """Returns the names of a model's optimizer and schedule, without those that Muster has."""
    optimizer = inner_optimizer(model.optimizer)
    return [*([] if is_known_optimizer(optimizer) else [type(optimizer).__name__]),
            *([] if is_known_schedule(optimizer) else [type(optimizer._learning_rate).__name__])]


def _is_known_function(function):
    # Functions without a name that a file of Keras had seem to be Keras' own.
    return isinstance(function, str) or (
        (getattr(function, "__module__", "") or "").split(".")[0] == "keras"
        and getattr(function, "__name__", "") != "<lambda>")


def _wrapped_function(measure):
    """Returns the function of a loss or metric of Keras that wraps one, otherwise None."""
    if not is_of_keras(measure):
        return None
    function = getattr(measure, "fn", None) if isinstance(measure, keras.losses.Loss) \
        else getattr(measure, "_fn", None)
    return function if callable(function) else None


def is_known_measure(measure):
    """True for a loss or metric that Muster has: an object, a function or a name of Keras."""
    if measure is None or isinstance(measure, str):
        return True
    if not hasattr(measure, "get_config"):
        return _is_known_function(measure)
    wrapped = _wrapped_function(measure)
    return is_of_keras(measure) and (wrapped is None or _is_known_function(wrapped))


def flat_measures(measures):
    """Returns the losses or metrics in a structure."""
    if isinstance(measures, dict):
        return [one for value in measures.values() for one in flat_measures(value)]
    if isinstance(measures, (list, tuple)):
        return [one for value in measures for one in flat_measures(value)]
    return [measures]


def name_of(measure):
    """Returns the name of a loss or metric in Keras' logs."""
    return keras.src.utils.naming.get_object_name(measure)


MEASURES = ("loss", "metrics", "weighted_metrics")


def unknown_measures(model):
    """Returns the names of the losses and metrics that Muster does not have."""
    settings = model._compile_config.config
    names = [name_of(measure) for what in MEASURES for measure in flat_measures(settings.get(what))
             if not is_known_measure(measure)]
    return list(dict.fromkeys(names))


def unknown_parts(model):
    """Returns the names of the layers and operations of a model that Muster does not have.

    Returns [the name of the model] for one that is no Sequential or functional model.
    """
    functional = functional_of(model)
    if functional is None:
        return [model.name]
    names = [] if is_of_keras(model) else [model.name]  # The cluster knows Keras' classes only.
    for node in nodes_of(functional):
        operation = node.operation
        if functional_of(operation) is not None:
            names += unknown_parts(operation)
        elif not isinstance(operation, keras.layers.Layer):
            if not is_known_operation(node) and not _computes_mask(functional, node):
                names.append(operation.name)
        elif not is_known(operation):
            names.append(operation.name)
    return list(dict.fromkeys(names))


def is_whole(model):
    """True if the step of a model is one program.

    Raises:
      ValueError: the model overrides the step.
    """
    for name in _STEPS:
        if getattr(type(model), name) is not getattr(keras.Model, name):
            raise ValueError(f"{type(model).__name__} overrides {name}(), whose code cannot run in "
                             "the cluster; override compute_loss() and compute_metrics() in place "
                             "of it")
    # Only what layers add to the loss is minimized: there may be no labels.
    losses = model._compile_config.config.get("loss")
    return (functional_of(model) is None or losses is None or _passes_masks_on(model)
            # Muster's losses have no such mean.
            or any(getattr(loss, "reduction", None) == "mean_with_sample_weight"
                   for loss in flat_measures(losses)))


def _passes_masks_on(model):
    """True if layers that Muster does not have compute masks for other layers."""
    functional = functional_of(model)
    for node in nodes_of(functional) if functional is not None else []:
        operation = node.operation
        if isinstance(operation, keras.layers.Layer) and not is_known(operation) and any(
                getattr(output, "_keras_mask", None) is not None for output in node.outputs):
            return True
        if functional_of(operation) is not None and _passes_masks_on(operation):
            return True
    return False


def _batch_of(types):
    """Returns a batch of KerasTensors in a structure of (shape of an example, dtype)."""
    return with_values(types, [keras.KerasTensor((2, *shape), dtype)
                               for shape, dtype in types_in(types)])


def build_call(model, types):
    """Creates all variables of the layers of a model.

    Args:
      types: the inputs, a structure of (shape of an example, dtype).
    """
    if not model.built:
        keras.src.backend.compute_output_spec(model, _batch_of(types))


def build_step(model, example):
    """Creates all variables of a model, its metrics and its optimizer.

    Args:
      example: (x, y, sample weight), structures of (shape of an example, dtype).
    """
    model._symbolic_build(data_batch=_batch_of(example))


def _things(model):
    """Yields the objects and functions of which a model and its settings consist."""
    yield from model._flatten_layers()
    for layer in model._flatten_layers():
        for name, value in vars(layer).items():
            # Methods that Keras has wrapped refer to the layer.
            if callable(value) and not name.startswith("_") and not hasattr(type(layer), name):
                yield value
    for what in MEASURES:
        for measure in flat_measures(model._compile_config.config.get(what)):
            yield measure
            yield _wrapped_function(measure)
    yield model.optimizer
    yield inner_optimizer(model.optimizer)
    yield inner_optimizer(model.optimizer)._learning_rate


def own_objects(model):
    """Yields (name for errors, object) of what a model has of the user's own.

    Layers, losses, metrics and the optimizer.
    """
    if not is_known_optimizer(model.optimizer):
        optimizer = inner_optimizer(model.optimizer)
        yield f"optimizer {type(optimizer).__name__}", optimizer
    for layer in model._flatten_layers(include_self=False):
        if not is_of_keras(layer):
            yield f"layer {layer.name}", layer
    for what in MEASURES:
        for measure in flat_measures(model._compile_config.config.get(what)):
            if hasattr(measure, "get_config") and not is_of_keras(measure):
                yield f"{what} {name_of(measure)}", measure


def custom_classes(model):
    """Returns the classes and functions of the user's own in a compiled model."""
    found = {}
    for thing in _things(model):
        is_definition = isinstance(thing, type) or hasattr(thing, "__qualname__")
        definition = thing if is_definition else type(thing)
        module = (getattr(definition, "__module__", None) or "").split(".")[0]
        if module != "keras" and getattr(builtins, definition.__name__, None) is not definition \
                and thing is not None:
            found[definition] = None
    return list(found)


def is_implicit_mask(node, name, value):
    """True if `value`, an argument of a call, is a mask that Keras passes by itself."""
    return name == "mask" and any(getattr(tensor, "_keras_mask", None) is value
                                  for tensor in node.arguments.args
                                  if isinstance(tensor, keras.KerasTensor))


def _computes_mask(model, node):
    """True if the operation's result is only a mask that Keras passes to layers."""
    for output in node.outputs:
        for other in nodes_of(model):
            if any(tensor is output for tensor in other.arguments.keras_tensors):
                if not any(is_implicit_mask(other, name, output)
                           for name in other.arguments.kwargs):
                    return False
        if any(tensor is output for tensor in model.outputs):
            return False
    return True
