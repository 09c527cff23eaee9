"""Models with parts that Muster does not know: each part becomes a program.

A part is a layer of the user's own, an operation of keras.ops, or a subclassed model. It is
exported by JAX, and a layer of class Program stands in its place in the file that the cluster
reads.
"""

import builtins
import contextlib

import keras

_STEPS = ("train_step", "test_step")
# Layers of Keras whose function is Python code.
_UNKNOWN_LAYERS = frozenset({"FlaxLayer", "JaxLayer", "Lambda"})
# Operations with a number that Muster computes as a Rescaling.
_OPERATIONS_WITH_NUMBERS = frozenset({"Add", "Subtract", "Multiply", "Divide", "TrueDivide"})


def _is_of_keras(thing):
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


def _functional(operation):
    """Returns the functional model of a Sequential or functional model, otherwise None."""
    if not _is_structure(operation):
        return None
    return operation._functional if isinstance(operation, keras.Sequential) else operation


def _nodes(functional):
    """Returns the calls in a functional model, without those of inputs."""
    return [node for nodes in functional._nodes_by_depth.values() for node in nodes
            if not isinstance(node.operation, keras.layers.InputLayer)]


def _takes_number(node):
    tensors = node.arguments.keras_tensors
    return (type(node.operation).__name__ in _OPERATIONS_WITH_NUMBERS and len(tensors) == 1
            and len(node.arguments.args) == 2)


def _is_known_value(value):
    """True for an attribute of a layer that the cluster can have: no code of the user's own."""
    if isinstance(value, (keras.layers.Layer, type)) or not callable(value):
        return True  # Layers inside are looked at separately.
    if hasattr(value, "get_config"):
        return _is_of_keras(value)
    return _is_known_function(value)


def _is_known(operation):
    """True if Muster has the layer, with everything that it consists of."""
    if not _is_of_keras(operation) or type(operation).__name__ in _UNKNOWN_LAYERS:
        return False
    if not isinstance(operation, keras.layers.Layer):
        return True
    # Methods that Keras has wrapped are attributes, too.
    values = [value for name, value in vars(operation).items()
              if not name.startswith("_") and not hasattr(type(operation), name)]
    inner = operation._flatten_layers(include_self=False, recursive=False)
    return all(map(_is_known_value, values)) and all(map(_is_known, inner))


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

    def load_own_variables(self, store):
        for index, variable in enumerate(self._part_weights()):
            variable.assign(store[str(index)])


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


def _is_known_function(function):
    return isinstance(function, str) or (
        getattr(function, "__module__", "") or "").split(".")[0] == "keras"


def _is_known_measure(measure):
    """True for a loss or metric that Muster has: an object, a function or a name of Keras."""
    if measure is None or isinstance(measure, str):
        return True
    if not hasattr(measure, "get_config"):
        return _is_known_function(measure)
    wrapped = getattr(measure, "fn", None) or getattr(measure, "_fn", None)
    return _is_of_keras(measure) and (wrapped is None or _is_known_function(wrapped))


def _flat(measures):
    """Returns the losses or metrics in a structure."""
    if isinstance(measures, dict):
        return [one for value in measures.values() for one in _flat(value)]
    if isinstance(measures, (list, tuple)):
        return [one for value in measures for one in _flat(value)]
    return [measures]


def _name_of(measure):
    return getattr(measure, "name", None) or getattr(measure, "__name__", type(measure).__name__)


_MEASURES = ("loss", "metrics", "weighted_metrics")


def unknown_measures(model):
    """Returns the names of the losses and metrics that Muster does not have."""
    settings = model._compile_config.config
    names = [_name_of(measure) for what in _MEASURES for measure in _flat(settings.get(what))
             if not _is_known_measure(measure)]
    return list(dict.fromkeys(names))


class _Measures:
    """Converts the losses and metrics of compile().

    Args:
      model: the copy with programs.
      labels: for each output, (shape of an example, dtype) of its labels.
      sizes: the batch sizes that occur.
    """

    def __init__(self, model, labels, sizes):
        self._names = list(model.output_names)
        self._outputs = [(tuple(tensor.shape[1:]), tensor.dtype) for tensor in model.outputs]
        self._labels = labels
        self._sizes = sizes

    def settings(self, settings):
        """Returns the arguments of compile() with programs."""
        converted_settings = dict(settings)
        for what in _MEASURES:
            value = settings.get(what)
            if all(_is_known_measure(measure) for measure in _flat(value)):
                continue
            if what == "loss":
                converted_settings[what] = self._by_output(what, value, self._loss)
            else:
                weighted = what == "weighted_metrics"
                converted_settings[what] = self._by_output(
                    what, value, lambda one, index, weighted=weighted: [
                        self._metric(metric, index, weighted) for metric in _flat(one)])
        return converted_settings

    def _by_output(self, what, value, convert):
        """Returns {output: converted value}, or the converted value for one output."""
        if isinstance(value, dict):
            unknown = set(value) - set(self._names)
            if unknown:
                raise ValueError(f"{what} has {', '.join(map(repr, sorted(unknown)))}; the model's "
                                 f"outputs are {', '.join(self._names)}")
            each = value
        elif len(self._names) == 1:
            each = {self._names[0]: value[0] if what == "loss" and isinstance(value, (list, tuple))
                    else value}
        elif isinstance(value, (list, tuple)) and len(value) == len(self._names):
            each = dict(zip(self._names, value))
        elif what == "loss" and not isinstance(value, (list, tuple)):
            each = {name: value for name in self._names}
        else:
            raise ValueError(f"{what} is {value!r}; expected one entry for each of the outputs "
                             f"{', '.join(self._names)}")
        made = {name: convert(one, self._names.index(name)) for name, one in each.items()}
        return made if len(self._names) > 1 else made[self._names[0]]

    def _label(self, index, name):
        if index >= len(self._labels):
            raise ValueError(f"{name} needs labels for the output {self._names[index]}")
        return self._labels[index]

    def _loss(self, loss, index):
        from muster.program_losses import export_loss

        if _is_known_measure(loss):
            return loss
        name = _name_of(loss)
        if not isinstance(loss, keras.losses.Loss):
            loss = keras.src.losses.losses.LossFunctionWrapper(loss, name=name)
        program = export_loss(name, loss, self._label(index, f"loss {name}"),
                              self._outputs[index], self._sizes)
        return ProgramLoss(name, program, loss.reduction)

    def _metric(self, metric, index, is_weighted):
        from muster.program_losses import export_metric

        if _is_known_measure(metric):
            return metric
        name = _name_of(metric)
        if not isinstance(metric, keras.metrics.Metric):
            metric = keras.metrics.MeanMetricWrapper(metric, name=name)
        return ProgramMetric(name, export_metric(
            metric, self._label(index, f"metric {name}"), self._outputs[index], self._sizes,
            is_weighted))


class _Conversion:
    """Builds a copy of a functional model in which programs stand for unknown parts.

    Args:
      train_sizes, inference_sizes: the batch sizes that occur.
    """

    def __init__(self, train_sizes, inference_sizes):
        self._sizes = (train_sizes, inference_sizes)
        self._replaced = {}  # By the id of a layer: the Program, or a rebuilt model.
        self._new_nodes = []

    def convert(self, model):
        """Returns the copy. It shares the layers that Muster knows with `model`."""
        functional = _functional(model)
        inputs = keras.tree.map_structure(
            lambda tensor: keras.Input(batch_shape=tensor.shape, dtype=tensor.dtype,
                                       name=tensor._keras_history.operation.name),
            functional._inputs_struct)
        made = {id(old): new for old, new in zip(functional.inputs,
                                                 keras.tree.flatten(inputs))}
        outputs = keras.tree.map_structure(lambda tensor: self._value(tensor, made),
                                           functional._outputs_struct)
        return keras.Model(inputs, outputs, name=model.name)

    def undo(self):
        """Removes the traces of the copy from the layers of the model."""
        for operation, node in self._new_nodes:
            operation._inbound_nodes.remove(node)

    def _value(self, tensor, made):
        """Returns the copy of a KerasTensor."""
        pending = [tensor]
        while pending:
            last = pending[-1]
            if id(last) in made:
                pending.pop()
                continue
            history = last._keras_history
            node = history.operation._inbound_nodes[history.node_index]
            missing = [one for one in self._tensors(node) if id(one) not in made]
            if missing:
                pending += missing
                continue
            outputs = keras.tree.flatten(self._call(node, made))
            made.update({id(old): new for old, new in zip(node.outputs, outputs)})
        return made[id(tensor)]

    @staticmethod
    def _is_implicit_mask(node, name, value):
        return name == "mask" and any(getattr(tensor, "_keras_mask", None) is value
                                      for tensor in node.arguments.args
                                      if isinstance(tensor, keras.KerasTensor))

    def _tensors(self, node):
        """Returns the inputs of a call, without the masks that Keras passes by itself."""
        implicit = [value for name, value in node.arguments.kwargs.items()
                    if _is_known(node.operation) and self._is_implicit_mask(node, name, value)]
        tensors = {id(tensor): tensor for tensor in node.arguments.keras_tensors
                   if all(tensor is not mask for mask in implicit)}
        return list(tensors.values())

    def _call(self, node, made):
        operation = node.operation
        is_layer = isinstance(operation, keras.layers.Layer)
        if _functional(operation) is not None and unknown_parts(operation):
            if id(operation) not in self._replaced:
                self._replaced[id(operation)] = self.convert(operation)
            args, kwargs = node.arguments.fill_in(made)
            return self._replaced[id(operation)](*args, **kwargs)
        if (_is_known(operation) and is_layer) or _takes_number(node):
            args, kwargs = node.arguments.fill_in(made)
            kwargs = {name: value for name, value in kwargs.items()
                      if value is not None or node.arguments.kwargs[name] is None}
            outputs = operation(*args, **kwargs)
            self._new_nodes.append((operation, operation._inbound_nodes[-1]))
            return outputs
        return self._program_of(node)(*[made[id(tensor)] for tensor in self._tensors(node)])

    def _program_of(self, node):
        from muster import program_export

        operation = node.operation
        if id(operation) in self._replaced:
            return self._replaced[id(operation)]
        tensors = self._tensors(node)
        takes_training = getattr(operation, "_call_has_training_arg", False)

        def call(values, training):
            args, kwargs = node.arguments.fill_in(
                {id(tensor): value for tensor, value in zip(tensors, values)})
            if takes_training:
                kwargs["training"] = training
            return operation(*args, **kwargs)

        for output in node.outputs:
            if getattr(output, "_keras_mask", None) is not None:
                raise ValueError(f"layer {operation.name} passes a mask on, which is not "
                                 "supported for a layer that Muster does not have")
        part = program_export.CalledPart(
            operation.name, operation,
            [(tuple(tensor.shape), tensor.dtype) for tensor in tensors],
            [not isinstance(tensor._keras_history.operation, keras.layers.InputLayer)
             for tensor in tensors], call)
        fields, weights = program_export.export_part(part, *self._sizes)
        outputs = list(node.outputs)
        program = Program(operation.name, fields, weights,
                          outputs[0] if len(outputs) == 1 else outputs)
        self._replaced[id(operation)] = program
        return program


def unknown_parts(model):
    """Returns the names of the layers and operations of a model that Muster does not have.

    Returns [the name of the model] for one that is no Sequential or functional model.
    """
    functional = _functional(model)
    if functional is None:
        return [model.name]
    names = [] if _is_of_keras(model) else [model.name]  # The cluster knows Keras' classes only.
    for node in _nodes(functional):
        operation = node.operation
        if _functional(operation) is not None:
            names += unknown_parts(operation)
        elif not isinstance(operation, keras.layers.Layer):
            if not _takes_number(node) and not _computes_mask(functional, node):
                names.append(operation.name)
        elif not _is_known(operation):
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
    return _functional(model) is None


def _things(model):
    """Yields the objects and functions of which a model and its settings consist."""
    yield from model._flatten_layers()
    for layer in model._flatten_layers():
        for name, value in vars(layer).items():
            # Methods that Keras has wrapped refer to the layer.
            if callable(value) and not name.startswith("_") and not hasattr(type(layer), name):
                yield value
    for what in _MEASURES:
        for measure in _flat(model._compile_config.config.get(what)):
            yield measure
            yield getattr(measure, "fn", None) or getattr(measure, "_fn", None)
    yield model.optimizer


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


def _computes_mask(model, node):
    """True if the operation's result is only a mask that Keras passes to layers."""
    for output in node.outputs:
        for other in _nodes(model):
            if any(tensor is output for tensor in other.arguments.keras_tensors):
                if not any(_Conversion._is_implicit_mask(other, name, output)
                           for name in other.arguments.kwargs):
                    return False
        if any(tensor is output for tensor in model.outputs):
            return False
    return True


def _trainable_variables(model):
    """Returns the trainable variables of a copy in the order of the cluster's weights."""
    variables = []
    for layer in model.layers:
        if isinstance(layer, Program):
            variables += layer._part_weights()[:layer._fields["trainable_count"]]
        elif _functional(layer) is not None:
            variables += _trainable_variables(layer)
        else:
            variables += layer.trainable_variables
    return list({id(variable): variable for variable in variables}.values())


def _reordered(optimizer, old, new):
    """Returns the optimizer for the variables in another order, and its variables' sources.

    The sources are {id of a variable of the result: the variable of `optimizer`}.
    """
    if [id(variable) for variable in old] == [id(variable) for variable in new]:
        return optimizer, {id(variable): variable for variable in optimizer.variables}
    positions = {id(variable): index for index, variable in enumerate(old)}
    copy = type(optimizer).from_config(optimizer.get_config())
    copy.build(new)
    sources = {}
    for name, value in vars(copy).items():
        source = vars(optimizer).get(name)
        if hasattr(value, "assign"):
            sources[id(value)] = source
        elif isinstance(value, list) and len(value) == len(new) and name != "_trainable_variables":
            sources.update({id(one): source[positions[id(variable)]]
                            for one, variable in zip(value, new) if hasattr(one, "assign")})
    for variable in copy.variables:
        variable.assign(sources[id(variable)])
    return copy, sources


@contextlib.contextmanager
def converted(model, train_sizes, inference_sizes, labels):
    """Within the context, there is a copy of a compiled model with programs for unknown parts.

    Yields the copy, which is compiled and can be saved within the context. Both models have
    the same variables, so loading weights into the copy, also later, changes the model.

    Args:
      train_sizes, inference_sizes: the batch sizes that occur.
      labels: for each output, (shape of an example, dtype) of its labels.

    Raises:
      ValueError: a part cannot be exported; names it.
    """
    conversion = _Conversion(train_sizes, inference_sizes)
    try:
        copy = conversion.convert(model)
        sizes = sorted({*train_sizes, *inference_sizes}, reverse=True)
        copy.compile(**_Measures(copy, labels, sizes).settings(model._compile_config.config))
        copy.optimizer, sources = _reordered(model.optimizer, model.trainable_variables,
                                             _trainable_variables(copy))
        copy.optimizer_sources = lambda: sources  # Keras does not look into functions.
        yield copy
    finally:
        conversion.undo()
