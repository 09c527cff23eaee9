"""Copies of models in which programs stand for the parts that Muster does not know."""

import collections
import contextlib
import warnings

import keras
from muster import program_optimizer
from muster.program_export import CalledPart, export_part, output_types
from muster.program_measures import Measures
from muster.programs import (Program, functional_of, inner_optimizer, is_implicit_mask, is_known,
                             is_known_operation, nodes_of, unknown_parts)


class _Conversion:
    """Builds a copy of a functional model in which programs stand for unknown parts.

    Args:
      model: of Keras.
      train_sizes, inference_sizes: the batch sizes that occur.
    """

    def __init__(self, model, train_sizes, inference_sizes):
        self._model = model
        self._sizes = (train_sizes, inference_sizes)
        self._groups = {}
        calls = collections.Counter(id(node.operation) for node in _all_nodes(model))
        self._shared = {operation for operation, count in calls.items() if count > 1}
        # The inputs of the whole model need no gradients. Those of inner models do.
        self._inputs_of_model = {id(tensor) for tensor in functional_of(model).inputs}
        # By the id of an operation: a rebuilt model, or a Program and how it is called.
        self._replaced = {}
        self._new_nodes = []

    def convert(self, shapes):
        """Returns the copy. It shares the layers that Muster knows with the model.

        Args:
          shapes: of the inputs, with the batch, for extents that the model leaves open; or
            empty.
        """
        return self._convert(self._model, shapes)

    def _convert(self, model, shapes):
        functional = functional_of(model)
        self._groups.update(_groups_of(functional, self._shared))
        given = dict(zip(map(id, functional.inputs), shapes))
        inputs = keras.tree.map_structure(
            lambda tensor: keras.Input(batch_shape=_completed(tensor.shape, given.get(id(tensor))),
                                       dtype=tensor.dtype,
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
            node = _node_of(last)
            missing = [one for one in self._inputs(node) if id(one) not in made]
            if missing:
                pending += missing
                continue
            outputs = keras.tree.flatten(self._call(node, made))
            made.update({id(old): new for old, new in zip(node.outputs, outputs)})
        return made[id(tensor)]

    def _inputs(self, node):
        """Returns the inputs of a call, or of the calls of its group."""
        group = self._groups.get(id(node), [node])
        inner = {id(tensor) for one in group for tensor in one.outputs}
        tensors = {id(tensor): tensor for one in group for tensor in _tensors(one)
                   if id(tensor) not in inner}
        return list(tensors.values())

    def _call(self, node, made):
        operation = node.operation
        if id(node) in self._groups:
            inputs = [made[id(tensor)] for tensor in self._inputs(node)]
            return self._program_of(node, inputs)(*inputs)
        args, kwargs = node.arguments.fill_in(made)
        if functional_of(operation) is not None and unknown_parts(operation):
            if id(operation) not in self._replaced:
                tensors = keras.tree.flatten(args)
                self._replaced[id(operation)] = self._convert(
                    operation, [tuple(tensor.shape) for tensor in tensors])
            return self._replaced[id(operation)](*args, **kwargs)
        kwargs = {name: value for name, value in kwargs.items()
                  if value is not None or node.arguments.kwargs[name] is None}
        outputs = operation(*args, **kwargs)
        self._new_nodes.append((operation, operation._inbound_nodes[-1]))
        return outputs

    def _program_of(self, node, inputs):
        """Returns the program of a group for these inputs in the copy."""
        operation = node.operation
        tensors = self._inputs(node)
        arguments = _arguments_text(node)
        if id(operation) in self._replaced:
            program, known = self._replaced[id(operation)]
            if arguments != known:
                raise ValueError(f"{operation.name} is called with {arguments} and with {known}, "
                                 "which is not supported for a layer that Muster does not have")
            return program
        group = _Group(self._groups[id(node)], tensors)
        part = CalledPart(
            operation.name, group, [(tuple(tensor.shape), tensor.dtype) for tensor in inputs],
            [id(operation) in self._shared or id(tensor) not in self._inputs_of_model
             for tensor in tensors], group.call)
        fields, weights = export_part(part, *self._sizes)
        outputs = [keras.KerasTensor(shape, dtype) for shape, dtype in output_types(fields)]
        program = Program(operation.name, fields, weights,
                          outputs[0] if len(outputs) == 1 else outputs)
        self._replaced[id(operation)] = (program, arguments)
        return program


def _all_nodes(model):
    """Yields the calls in a model and in the models inside it."""
    functional = functional_of(model)
    for node in nodes_of(functional) if functional is not None else []:
        yield node
        yield from _all_nodes(node.operation)


def _completed(shape, given):
    """Returns `shape` with the extents of `given` where it has None after the batch."""
    if given is None or len(given) != len(shape):
        return shape
    return (shape[0], *(other if extent is None else extent
                        for extent, other in zip(shape[1:], given[1:])))


def _node_of(tensor):
    history = tensor._keras_history
    return history.operation._inbound_nodes[history.node_index]


def _tensors(node):
    """Returns the inputs of a call, without the masks that Keras passes by itself."""
    implicit = [value for name, value in node.arguments.kwargs.items()
                if is_known(node.operation) and is_implicit_mask(node, name, value)]
    tensors = {id(tensor): tensor for tensor in node.arguments.keras_tensors
               if all(tensor is not mask for mask in implicit)}
    return list(tensors.values())


def _arguments_text(node):
    """Returns the arguments of a call, with types for the tensors."""
    types = {id(tensor): f"{tensor.dtype}{list(tensor.shape)}"
             for tensor in node.arguments.keras_tensors}
    return str(node.arguments.fill_in(types))


def _is_unknown(node):
    operation = node.operation
    if functional_of(operation) is not None or is_known_operation(node):
        return False
    return not (isinstance(operation, keras.layers.Layer) and is_known(operation))


def _groups_of(functional, shared):
    """Returns {id of an unknown call: the calls of its group, in order}.

    The calls of a group become one program. Only the last of them has outputs that others use.
    A layer that is called several times is a group of its own. Known operations between two
    unknown calls belong to the group, too.

    Args:
      shared: the ids of operations that are called several times, in any model.
    """
    nodes = nodes_of(functional)
    users = collections.defaultdict(list)
    for node in nodes:
        for tensor in node.arguments.keras_tensors:
            users[id(tensor)].append(node)
    results = {id(tensor) for tensor in functional.outputs}
    groups = {id(node): [node] for node in nodes if _is_unknown(node)}

    def is_only_used_in(group, node):
        return id(node.operation) not in shared and all(
            id(output) not in results
            and all(any(user is one for one in group) for user in users[id(output)])
            for output in node.outputs)

    def is_between(node):
        return is_known_operation(node) and any(
            id(_node_of(tensor)) in groups for tensor in node.arguments.keras_tensors)

    for node in nodes:  # From the outputs on: a call joins after all that use its outputs.
        group = groups.get(id(node))
        if group is None or id(node.operation) in shared:
            continue
        for tensor in node.arguments.keras_tensors:
            producer = _node_of(tensor)
            is_candidate = id(producer) in groups or is_between(producer)
            if is_candidate and groups.get(id(producer)) is not group \
                    and is_only_used_in(group, producer):
                group.insert(0, producer)
                groups[id(producer)] = group
    return groups


class _Group:
    """Neighbouring calls of layers and operations that Muster does not know, as one operation.

    Args:
      nodes: the calls, in order.
      tensors: the inputs of all.
    """

    def __init__(self, nodes, tensors):
        self._nodes = nodes
        self._tensors = tensors
        self._layers = [node.operation for node in nodes
                        if isinstance(node.operation, keras.layers.Layer)]

    def call(self, values, training):
        known = {id(tensor): value for tensor, value in zip(self._tensors, values)}
        for node in self._nodes:
            args, kwargs = node.arguments.fill_in(known)
            if getattr(node.operation, "_call_has_training_arg", False):
                kwargs["training"] = training
            outputs = keras.tree.flatten(node.operation(*args, **kwargs))
            known.update({id(tensor): value for tensor, value in zip(node.outputs, outputs)})
        return outputs

    def _flatten_layers(self):
        return [inner for layer in self._layers for inner in layer._flatten_layers()]

    def _of_layers(self, name):
        return [one for layer in self._layers for one in getattr(layer, name)]

    @property
    def variables(self):
        return list({id(one): one for one in self._of_layers("variables")}.values())

    @property
    def trainable_variables(self):
        return [one for one in self.variables if one.trainable]

    @property
    def losses(self):
        return self._of_layers("losses")


def _trainable_variables(model):
    """Returns the trainable variables of a copy in the order of the cluster's weights."""
    variables = []
    for layer in model.layers:
        if isinstance(layer, Program):
            variables += layer._part_weights()[:layer._fields["trainable_count"]]
        elif functional_of(layer) is not None:
            variables += _trainable_variables(layer)
        else:
            variables += [one for one in layer.variables if one.trainable]
    return list({id(variable): variable for variable in variables}.values())


def compile_for_cluster(copy, model, settings):
    """Compiles the copy of a model with an optimizer for the cluster.

    Args:
      settings: the arguments of compile(), with the optimizer of the model.

    Raises:
      ValueError: the update of an optimizer that Muster does not have cannot be exported.
    """
    optimizer, sources = program_optimizer.for_cluster(model.optimizer, _trainable_variables(copy))
    if optimizer is not model.optimizer:
        # compile() puts it into a LossScaleOptimizer if the model needs one.
        is_wrapped = settings["optimizer"] is model.optimizer
        settings = {**settings, "optimizer": optimizer if is_wrapped else
                    inner_optimizer(optimizer)}
    copy.compile(**settings)
    copy.optimizer = optimizer
    copy.optimizer_sources = lambda: sources  # Keras does not look into functions.


@contextlib.contextmanager
def converted(model, train_sizes, inference_sizes, inputs, labels):
    """Within the context, there is a copy of a compiled model with programs for unknown parts.

    Yields the copy, which is compiled and can be saved within the context. Both models have
    the same variables, so loading weights into the copy, also later, changes the model.

    Args:
      train_sizes, inference_sizes: the batch sizes that occur.
      inputs: for each input, (shape of an example, dtype); or empty.
      labels: for each output, (shape of an example, dtype) of its labels.

    Raises:
      ValueError: a part cannot be exported; names it.
    """
    conversion = _Conversion(model, train_sizes, inference_sizes)
    try:
        with warnings.catch_warnings():
            # An unknown layer drops masks in the model, too.
            warnings.filterwarnings("ignore", message=".*type Program.* mask")
            copy = conversion.convert([(None, *shape) for shape, _ in inputs])
        sizes = sorted({*train_sizes, *inference_sizes}, reverse=True)
        compile_for_cluster(copy, model,
                            Measures(copy, labels, sizes).settings(model._compile_config.config))
        yield copy
    finally:
        conversion.undo()
