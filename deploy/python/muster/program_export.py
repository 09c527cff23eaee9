"""Exports parts of a model as programs that need no Python. Needs Keras on JAX.

The modules of a program are StableHLO, which the cluster compiles. docs/formats.md describes
the encoded form.
"""

import base64
import collections
import contextlib
import json
import re

import jax
from jax import export

import keras

OF_LOSS = -1  # See encoded_program().
# Constraints of Keras that the cluster computes.
_CONSTRAINTS = {"MaxNorm": "max_norm", "MinMaxNorm": "min_max_norm", "NonNeg": "non_neg",
                "UnitNorm": "unit_norm"}
# The dtypes that tensors of the cluster have.
_DTYPES = frozenset({"float32", "float64", "float16", "bfloat16", "int32", "int64", "uint8",
                     "bool"})


def array_spec(shape, dtype):
    """Returns the ShapeDtypeStruct of an array, with a dtype that JAX has."""
    return jax.ShapeDtypeStruct(tuple(shape), jax.dtypes.canonicalize_dtype(str(dtype)))


def _type_text(shape, dtype):
    return f"{dtype}[{','.join(map(str, shape))}]"


def _types(avals):
    return [_type_text(aval.shape, aval.dtype) for aval in avals]


def _is_floating(aval):
    return jax.numpy.issubdtype(aval.dtype, jax.numpy.floating)


@contextlib.contextmanager
def stable_names(model):
    """Within the context, modules name the layers of a model as if it were the first of a process.

    Modules say which layer and which lines an operation comes from. Keras numbers the layers of a
    process, so without this a model that is built again would have other modules, which are
    compiled again. Lines are left out.
    """
    names, counts = {}, collections.Counter()
    for layer in model._flatten_layers():
        kind = keras.src.utils.naming.to_snake_case(type(layer).__name__)
        if layer.name not in names and re.fullmatch(kind + r"(_\d+)?", layer.name):
            names[layer.name] = f"{kind}_{counts[kind]}" if counts[kind] else kind
            counts[kind] += 1
    named_scope, frame_count = jax.named_scope, jax.config.jax_traceback_in_locations_limit
    jax.named_scope = lambda name: named_scope(names.get(name, name))
    jax.config.update("jax_traceback_in_locations_limit", 0)
    try:
        yield
    finally:
        jax.named_scope = named_scope
        jax.config.update("jax_traceback_in_locations_limit", frame_count)


def _module(function, arguments):
    """Returns (types of the results, module) of a function of flat arguments."""
    exported = export.export(jax.jit(function, keep_unused=True), platforms=["cpu"])(*arguments)
    return exported.out_avals, exported.mlir_module_serialized


def _merged(lists):
    """Returns the types that lists of types have in common, with "?" for extents that differ."""
    merged = []
    for types in zip(*lists):
        dtype = types[0].split("[")[0]
        columns = zip(*(one[len(dtype) + 1:-1].split(",") for one in types))
        extents = [column[0] if len(set(column)) == 1 else "?" for column in columns]
        merged.append(f"{dtype}[{','.join(extents)}]")
    return merged


def _gradient(function, arguments, inputs, outputs):
    """Returns the module of the gradient of a function.

    Args:
      inputs: the indices of the arguments whose gradients are computed.
      outputs: the types of the first outputs, whose gradients are the last arguments.
    """
    def backward(*values):
        given = list(values[:len(arguments)])

        def forward(*chosen):
            for index, value in zip(inputs, chosen):
                given[index] = value
            return function(*given)[:len(outputs)]

        _, differentiate = jax.vjp(forward, *[given[index] for index in inputs])
        return differentiate(tuple(values[len(arguments):]))

    return _module(backward, [*arguments, *(array_spec(one.shape, one.dtype)
                                            for one in outputs)])[1]


def _with_gradients(function, inputs):
    """Returns a function that also returns the gradients of its loss by some arguments.

    The loss is the first column of the first output, in each row.
    """
    def both(*values):
        def loss_of(*chosen):
            given = list(values)
            for index, value in zip(inputs, chosen):
                given[index] = value
            outputs = function(*given)
            return outputs[0][0, 0], outputs

        differentiate = jax.grad(loss_of, argnums=tuple(range(len(inputs))), has_aux=True)
        gradients, outputs = differentiate(*[values[index] for index in inputs])
        return (*outputs, *gradients)

    return both


def encoded_program(name, function, argument_lists, varies, gradient_inputs=None,
                    output_count=0):
    """Returns a function as an encoded program.

    Args:
      function: of arrays; returns a tuple of arrays.
      argument_lists: for each variant, the ShapeDtypeStructs of the arguments.
      varies: for each argument, True if its first extent is that of the batch.
      gradient_inputs: the indices of the arguments whose gradients are computed; None: the
        program has no gradient.
      output_count: the number of outputs, from the first, that have a gradient; or OF_LOSS:
        the program returns the gradients of the loss that the rows of its first output have.
    """
    is_of_loss = gradient_inputs is not None and output_count == OF_LOSS
    if is_of_loss:
        function = _with_gradients(function, gradient_inputs)
    variants = []
    for arguments in argument_lists:
        outputs, module = _module(function, arguments)
        variants.append({"inputs": _types(arguments), "outputs": _types(outputs),
                         "stablehlo": base64.b64encode(module).decode()})
        if gradient_inputs is not None and not is_of_loss:
            gradient = _gradient(function, arguments, gradient_inputs, outputs[:output_count])
            variants[-1]["gradient_stablehlo"] = base64.b64encode(gradient).decode()
    # Another batch size shows which extents vary if there is only one variant.
    other = [array_spec((value.shape[0] * 2, *value.shape[1:]), value.dtype) if is_batch
             else value for value, is_batch in zip(argument_lists[0], varies)]
    fields = {
        "name": name,
        "inputs": _merged([*(one["inputs"] for one in variants), _types(other)]),
        "outputs": _merged([*(one["outputs"] for one in variants),
                            _types(jax.eval_shape(function, *other))]),
    }
    if gradient_inputs is not None:
        fields["gradient_inputs"] = list(gradient_inputs)
        fields.update({"gradient_of_loss": True} if is_of_loss
                      else {"gradient_outputs": output_count})
    fields["variants"] = variants
    return json.dumps(fields)


def restricted(closed, outputs):
    """Returns a ClosedJaxpr with some outputs, and the indices of the inputs that it uses.

    Args:
      outputs: indices.
    """
    jaxpr = closed.jaxpr
    kept = [jaxpr.outvars[index] for index in outputs]
    needed = {id(atom) for atom in kept}
    equations = []
    for equation in reversed(jaxpr.eqns):
        if any(id(variable) in needed for variable in equation.outvars):
            equations.append(equation)
            needed |= {id(atom) for atom in equation.invars}
    used = [index for index, variable in enumerate(jaxpr.invars) if id(variable) in needed]
    info = jaxpr.debug_info._replace(result_paths=None)
    return closed.replace(jaxpr=jaxpr.replace(eqns=equations[::-1], outvars=kept,
                                              debug_info=info)), used


def output_types(fields):
    """Returns (shape, dtype) of the outputs of a part that export_part() has exported."""
    types = []
    for text in json.loads(fields["inference_program"])["outputs"][:fields["output_count"]]:
        dtype, extents = text[:-1].split("[")
        types.append((tuple(None if extent == "?" else int(extent)
                            for extent in extents.split(",") if extent), dtype))
    return types


class Part:
    """A part of a model that becomes a program: what its calls compute.

    Args:
      name: of the layer, operation or model.
      operation: the layer, operation or model.
      specs: (shape, dtype) of each input, with None for the extent of the batch.
      needs_gradient: for each input, False if it is data.

    Raises:
      ValueError: an input has no type that a program can have; names the part.
    """

    def __init__(self, name, operation, specs, needs_gradient):
        self.name = name
        self.operation = operation
        self.needs_gradient = needs_gradient
        self._specs = specs
        self.varies = [bool(shape) and shape[0] is None for shape, _ in specs]
        for shape, dtype in specs:
            if any(extent is None for extent in shape[1:]):
                raise ValueError(f"{name} has an input of shape {shape}; a program needs known "
                                 "extents after the batch: give them to keras.Input")
            self.check_dtype("an input", dtype)

    def add_input(self, spec, needs_gradient):
        """Adds an input after the others. Arguments as those of __init__()."""
        self._specs = [*self._specs, spec]
        self.varies.append(True)
        self.needs_gradient = [*self.needs_gradient, needs_gradient]

    def check_dtype(self, what, dtype):
        if str(dtype) not in _DTYPES:
            raise ValueError(f"{self.name} has {what} of dtype {dtype}; expected one of "
                             f"{', '.join(sorted(_DTYPES))}")

    def variables(self):
        """Returns the variables that become weights, beside the states of generators."""
        return list(getattr(self.operation, "variables", []))

    def trainable_variables(self):
        # A layer that is frozen says that it has none, but layers inside of it may train.
        return [one for one in getattr(self.operation, "variables", []) if one.trainable]

    def inputs(self, size):
        return [array_spec((size if extent is None else extent for extent in shape), dtype)
                for shape, dtype in self._specs]

    def state(self):
        """Returns (variable, value) of what each call starts with."""
        return []

    def call(self, values, training, scope):
        """Returns the outputs, a list of arrays.

        Args:
          scope: the StatelessScope of the call.
        """
        raise NotImplementedError

    def computes_loss(self):
        """True if each row of the only output begins with the loss to minimize."""
        return False

    def losses(self):
        """Returns what the last call added to the loss."""
        return list(getattr(self.operation, "losses", []))


class CalledPart(Part):
    """A layer or operation.

    Args:
      function: (list of arrays, training) -> outputs.
    """

    def __init__(self, name, operation, specs, needs_gradient, function):
        super().__init__(name, operation, specs, needs_gradient)
        self._function = function

    def call(self, values, training, scope):
        return keras.tree.flatten(self._function(values, training))


def seed_variables(operation):
    """Returns the states of the generators inside an operation, and of Keras' global one."""
    from keras.src.random.seed_generator import global_seed_generator

    layers = operation._flatten_layers() if hasattr(operation, "_flatten_layers") else []
    generators = [generator for layer in layers
                  for generator in getattr(layer, "_seed_generators", [])]
    states = [generator.state for generator in [*generators, global_seed_generator()]]
    return list({id(state): state for state in states}.values())


class _Exporter:
    """Traces the calls of a part: finds their effects, and exports them."""

    def __init__(self, part, train_sizes):
        self._part = part
        self._seeds = seed_variables(part.operation)
        variables, trainable = part.variables(), part.trainable_variables()
        others = {id(variable) for variable in [*self._seeds, *trainable]}
        self.weights = [*trainable, *(one for one in variables if id(one) not in others)]
        self.trainable_count = len(trainable)
        for variable in self.weights:
            part.check_dtype(f"the variable {variable.path}", variable.dtype)
        self._find_effects(train_sizes[0])

    def _call(self, xs, weights, seeds, training):
        """Returns (outputs, loss, new weights, new seeds), None for what does not change."""
        mapping = [*zip(self.weights, weights), *self._part.state(),
                   *((variable, jax.lax.bitcast_convert_type(seed, "uint32"))
                     for variable, seed in zip(self._seeds, seeds))]
        with keras.StatelessScope(state_mapping=mapping, collect_losses=True) as scope:
            before = {id(variable): scope.get_current_value(variable) for variable, _ in mapping}
            outputs = self._part.call(xs, training, scope)
            losses = self._part.losses()
        loss = sum(losses, start=jax.numpy.zeros((), "float32")) if losses else None

        def changed(variable):
            new = scope.get_current_value(variable)
            return None if new is before.get(id(variable)) else new

        return (outputs, loss, [changed(variable) for variable in self.weights],
                [changed(variable) for variable in self._seeds])

    def _find_effects(self, size):
        def trace(xs, weights, seeds):
            outputs, loss, new_weights, new_seeds = self._call(xs, weights, seeds, True)
            self.output_count = len(outputs)
            self.adds_loss = loss is not None
            self.updated = [index for index, new in enumerate(new_weights) if new is not None]
            used.extend(seed for seed, new in zip(self._seeds, new_seeds) if new is not None)
            return outputs

        used = []
        jax.eval_shape(trace, self._part.inputs(size), self._weight_types(), self._seed_types())
        self._seeds = used
        for index in self.updated:
            if str(self.weights[index].dtype) == "bool":
                raise ValueError(f"{self._part.name} changes {self.weights[index].path}, which is "
                                 "bool; expected a number")

    def _weight_types(self):
        return [array_spec(one.shape, one.dtype) for one in self.weights]

    def _seed_types(self):
        return [array_spec((2,), "int32") for _ in self._seeds]

    def training(self, sizes):
        """Returns the encoded program of a call in training."""
        part, weight_count = self._part, len(self.weights)
        x_count = len(part.varies)

        def function(*values):
            xs, rest = list(values[:x_count]), list(values[x_count:])
            weights, seeds = rest[:weight_count], rest[weight_count:]
            outputs, loss, new_weights, _ = self._call(xs, weights, seeds, True)
            differences = [new_weights[index] - weights[index] for index in self.updated]
            return (*outputs, *([] if loss is None else [loss]), *differences)

        argument_lists = [[*part.inputs(size), *self._weight_types(), *self._seed_types()]
                          for size in sizes]
        output_count = self.output_count + self.adds_loss
        chosen = [index for index, value in enumerate(argument_lists[0])
                  if index < x_count + self.trainable_count and _is_floating(value)
                  and (index >= x_count or part.needs_gradient[index])]
        outputs = jax.eval_shape(function, *argument_lists[0])[:output_count]
        has_gradient = bool(chosen) and all(map(_is_floating, outputs))
        varies = [*part.varies, *[False] * (weight_count + len(self._seeds))]
        return encoded_program(part.name, function, argument_lists, varies,
                               chosen if has_gradient else None,
                               OF_LOSS if part.computes_loss() else output_count)

    def inference(self, sizes):
        """Returns the encoded program of a call in evaluation or prediction."""
        part, x_count = self._part, len(self._part.varies)

        def function(*values):
            seeds = [jax.numpy.zeros((2,), "int32") for _ in self._seeds]
            outputs, loss, _, _ = self._call(list(values[:x_count]), list(values[x_count:]),
                                             seeds, False)
            if not self.adds_loss:
                return tuple(outputs)
            return (*outputs, jax.numpy.zeros((), "float32") if loss is None else loss)

        argument_lists = [[*part.inputs(size), *self._weight_types()] for size in sizes]
        return encoded_program(part.name, function, argument_lists,
                               [*part.varies, *[False] * len(self.weights)])

    @property
    def seed_count(self):
        return len(self._seeds)


def _constraint_text(variable):
    """Returns the constraint of a variable in the text form of proto::Constraint."""
    constraint = getattr(variable, "constraint", None)
    if constraint is None:
        return ""
    name = type(constraint).__name__
    if type(constraint).__module__.split(".")[0] == "keras" and name in _CONSTRAINTS:
        values = [(field, value) for field, given in constraint.get_config().items()
                  for value in (given if isinstance(given, (list, tuple)) else [given])
                  if value is not None]
        fields = " ".join(f"{field}: {value}" for field, value in values)
        return f"{_CONSTRAINTS[name]} {{ {fields} }}"
    if str(variable.dtype) != "float32":
        raise ValueError(f"the constraint {name} is on {variable.path}, which is "
                         f"{variable.dtype}; expected float32")
    program = encoded_program(name, lambda value: (constraint(value),),
                              [[array_spec(variable.shape, "float32")]], [False])
    return f"program: {json.dumps(program)}"


def _constraint_texts(weights):
    texts = [_constraint_text(variable) for variable in weights]
    return texts if any(texts) else []


def export_part(part, train_sizes, inference_sizes):
    """Returns (the config of a layer of class Program, the variables that are its weights).

    Args:
      train_sizes, inference_sizes: the batch sizes that occur.

    Raises:
      ValueError: the part cannot be exported; names it.
    """
    exporter = _Exporter(part, train_sizes)
    weights = exporter.weights
    names = [variable.path.replace("/", "_") for variable in weights]
    fields = {
        "training_program": exporter.training(train_sizes),
        "inference_program": exporter.inference(inference_sizes),
        "input_count": len(part.varies),
        "output_count": exporter.output_count,
        "weight_names": [f"{name}_{index}" if names.count(name) > 1 else name
                         for index, name in enumerate(names)],
        "weight_types": [_type_text(variable.shape, variable.dtype) for variable in weights],
        "trainable_count": exporter.trainable_count,
        "weight_constraints": _constraint_texts(weights),
        "updated_weights": exporter.updated,
        "seed_count": exporter.seed_count,
        "adds_loss": exporter.adds_loss,
    }
    return fields, weights
