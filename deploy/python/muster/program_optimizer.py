"""Exports the updates of optimizers that Muster does not have. Needs Keras on JAX.

common/compute/optimizers/program_rule.h describes the programs.
"""

import collections
import contextlib

import jax
from jax.extend import core
import numpy as np

import keras
from muster.program_export import array_spec, encoded_program
from muster.programs import (ProgramOptimizer, ProgramSchedule, inner_optimizer,
                             is_known_optimizer, is_known_schedule)

# The numbers of elements for which a program that updates single elements is compiled. Servers
# pass 64 KiB at a time (kRunBytes in ps/shard_variable.cc).
_ELEMENT_COUNTS = (65536, 16384, 1024)
_SLOT_COUNT_MAX = 4
# Operations of JAX on arrays of one shape that compute each element from the same element of
# the operands.
_ELEMENTWISE = frozenset("""
    abs add and atan2 cbrt ceil clamp convert_element_type copy cos cosh div eq erf erf_inv erfc
    exp exp2 expm1 floor ge gt integer_pow is_finite le log log1p logistic lt max min mul ne neg
    nextafter not or pow reduce_precision rem round rsqrt select_n sign sin sinh sqrt square
    stop_gradient sub tan tanh xor""".split())
_CALLS = {"pjit": "jaxpr", "jit": "jaxpr", "closed_call": "call_jaxpr",
          "custom_jvp_call": "call_jaxpr", "custom_vjp_call": "call_jaxpr"}

_Update = collections.namedtuple("_Update", ["function", "jaxpr", "slots"])


class _NotElementwise(Exception):
    pass


def _evaluate_elementwise(jaxpr, constants, shape, arguments):
    """Evaluates a jaxpr for arrays of another shape.

    Args:
      jaxpr: all arrays have `shape` or are scalars.
      arguments: 1-dimensional arrays in place of those of `shape`, and scalars.

    Raises:
      _NotElementwise: an element of the result depends on other elements.
    """
    values = dict(zip(jaxpr.constvars, constants))
    values.update(zip(jaxpr.invars, arguments))

    def read(atom):
        if tuple(atom.aval.shape) not in ((), shape):
            raise _NotElementwise
        if isinstance(atom, core.Literal):
            return atom.val
        value = values[atom]
        if atom.aval.shape and tuple(np.shape(value)) == shape:
            raise _NotElementwise  # A constant with a value for each element.
        return value

    for equation in jaxpr.eqns:
        name = equation.primitive.name
        operands = [read(atom) for atom in equation.invars]
        if name in _CALLS:
            inner = equation.params[_CALLS[name]]
            results = _evaluate_elementwise(inner.jaxpr, inner.consts, shape, operands)
        elif name == "broadcast_in_dim":
            # Scalars are broadcast by what uses them.
            results = operands[:1]
        elif name in _ELEMENTWISE:
            arrays = [one for one in operands if np.ndim(one)]
            if arrays:
                operands = [one if np.ndim(one) else jax.numpy.broadcast_to(one, arrays[0].shape)
                            for one in operands]
            result = equation.primitive.bind(*operands, **equation.params)
            results = result if equation.primitive.multiple_results else [result]
        else:
            raise _NotElementwise
        values.update(zip(equation.outvars, results))
    return [read(atom) for atom in jaxpr.outvars]


def _elementwise(update, shape):
    """Returns the function of an update for 1-dimensional arrays."""
    def function(*arguments):
        count = arguments[1].shape[0]
        results = _evaluate_elementwise(update.jaxpr.jaxpr, update.jaxpr.consts, shape, arguments)
        return tuple(jax.numpy.broadcast_to(result, (count,)) for result in results)

    return function


def _arguments(shape, slot_count):
    """Returns the types of the arguments of an update program."""
    return [*[array_spec(shape, "float32")] * (2 + slot_count), array_spec((), "int32"),
            array_spec((), "float32")]


class _Exporter:
    """Traces the updates of a built optimizer."""

    def __init__(self, optimizer):
        self._optimizer = optimizer
        self._name = type(optimizer).__name__
        self._variables = optimizer._trainable_variables
        # In place of the learning rate and of a schedule.
        self._rate = keras.Variable(0.0, dtype="float32", name="learning_rate")
        apart = [optimizer.iterations, getattr(optimizer, "_learning_rate", None),
                 *getattr(optimizer, "_model_variables_moving_average", []),
                 *getattr(optimizer, "_accumulated_gradients", [])]
        known = {id(one) for one in apart} | {id(optimizer._iterations)}
        self._state = [one for one in optimizer.variables if id(one) not in known]

    @contextlib.contextmanager
    def _without_stages(self):
        """Within the context, each gradient is an update, and the learning rate a variable.

        The cluster accumulates gradients and computes schedules.
        """
        attributes = vars(self._optimizer)
        before = {name: attributes[name] for name in ("gradient_accumulation_steps",
                                                      "_learning_rate")}
        attributes.update(gradient_accumulation_steps=None, _learning_rate=self._rate)
        try:
            yield
        finally:
            attributes.update(before)

    def _apply(self, variable, gradient, value, state, step, rate):
        """Returns (new value, new state) of an update, a function for JAX."""
        mapping = [(variable, value), *zip(self._state, state),
                   (self._optimizer._iterations, step), (self._rate, rate)]
        with keras.StatelessScope(state_mapping=mapping) as scope:
            self._optimizer._apply_weight_decay([variable])
            self._optimizer._backend_update_step([gradient], [variable], rate)
        return (scope.get_current_value(variable),
                [scope.get_current_value(one) for one in self._state])

    def _used_state(self, variable):
        """Returns (indices of the state that an update uses, indices of what it changes)."""
        count = len(self._state)
        array = array_spec(variable.shape, "float32")
        closed = jax.make_jaxpr(lambda *values: self._apply(variable, *values))(
            array, array, [array_spec(one.shape, one.dtype) for one in self._state],
            array_spec((), "int32"), array_spec((), "float32"))
        inputs = closed.jaxpr.invars[2:2 + count]
        outputs = closed.jaxpr.outvars[1:]
        read = {id(atom) for equation in closed.jaxpr.eqns for atom in equation.invars}
        read |= {id(closed.jaxpr.outvars[0])}
        changed = [index for index in range(count) if outputs[index] is not inputs[index]]
        used = [index for index in range(count) if id(inputs[index]) in read or index in changed]
        return used, changed

    def _slots(self):
        """Returns for each variable {name of a slot: its index in the state}."""
        found = [self._used_state(variable) for variable in self._variables]
        users = collections.Counter(index for used, _ in found for index in used)
        changed = {index for _, of_variable in found for index in of_variable}
        slots = []
        for variable, (used, _) in zip(self._variables, found):
            of_variable = {}
            for index in used:
                if index not in changed:
                    continue  # A constant.
                slot = self._state[index]
                if users[index] > 1:
                    raise ValueError(f"{self._name} changes {slot.path} with the gradients of "
                                     "several variables, which train in different places; "
                                     "expected state that belongs to one variable each")
                if tuple(slot.shape) != tuple(variable.shape) or slot.dtype != "float32":
                    raise ValueError(f"{self._name} keeps {slot.path} of {slot.dtype} and shape "
                                     f"{tuple(slot.shape)} for {variable.path}; expected float32 "
                                     f"and the shape of the variable, {tuple(variable.shape)}")
                prefix = variable.path.replace("/", "_") + "_"
                name = slot.name.removeprefix(prefix)
                while name in of_variable:
                    name += "_"
                of_variable[name] = index
            slots.append(of_variable)
        return slots

    def _update(self, variable, names, slots):
        """Returns the _Update of one variable."""
        indices = [slots.get(name) for name in names]

        def function(gradient, value, *rest):
            own, (step, rate) = rest[:-2], rest[-2:]
            state = [one.value for one in self._state]
            for index, slot in zip(indices, own):
                if index is not None:
                    state[index] = slot
            new_value, new_state = self._apply(variable, gradient, value, state, step, rate)
            return (new_value, *(slot if index is None else new_state[index]
                                 for index, slot in zip(indices, own)))

        jaxpr = jax.make_jaxpr(function)(*_arguments(variable.shape, len(names)))
        return _Update(function, jaxpr, indices)

    def export(self):
        """Returns (the config of a ProgramOptimizer, for each variable its slots by name)."""
        for variable in self._variables:
            if variable.dtype != "float32":
                raise ValueError(f"{self._name} trains {variable.path}, which is "
                                 f"{variable.dtype}; expected float32")
        with self._without_stages():
            slots = self._slots()
            names = list(dict.fromkeys(name for of_variable in slots for name in of_variable))
            if len(names) > _SLOT_COUNT_MAX:
                raise ValueError(f"{self._name} keeps {len(names)} arrays for a variable, "
                                 f"{', '.join(names)}; expected at most {_SLOT_COUNT_MAX}")
            updates = [self._update(variable, names, of_variable)
                       for variable, of_variable in zip(self._variables, slots)]
            programs = self._programs(updates, len(names))
        fields = {**self._initial_values(names, slots), "programs": programs}
        return fields, [{name: self._state[index] for name, index in of_variable.items()}
                        for of_variable in slots]

    def _programs(self, updates, slot_count):
        uniform = self._uniform(updates, slot_count)
        if uniform is not None:
            return [uniform]
        by_shape = {}
        for variable, update in zip(self._variables, updates):
            shape = tuple(variable.shape)
            other, known = by_shape.setdefault(shape, (variable, update))
            if str(known.jaxpr) != str(update.jaxpr):
                raise ValueError(f"{self._name} updates {other.path} and {variable.path}, which "
                                 f"have the shape {shape}, in different ways; expected one update "
                                 "for all variables of a shape")
        return [encoded_program(self._name, update.function, [_arguments(shape, slot_count)],
                                [False] * (4 + slot_count))
                for shape, (_, update) in by_shape.items()]

    def _uniform(self, updates, slot_count):
        """Returns the program that updates each element of all variables, or None."""
        arguments = [_arguments((count,), slot_count) for count in _ELEMENT_COUNTS]
        texts = set()
        try:
            for variable, update in zip(self._variables, updates):
                function = _elementwise(update, tuple(variable.shape))
                texts.add(str(jax.make_jaxpr(function)(*arguments[0])))
        except _NotElementwise:
            return None
        if len(texts) > 1:
            return None
        return encoded_program(self._name, function, arguments,
                               [*[True] * (2 + slot_count), False, False])

    def _initial_values(self, names, slots):
        """Returns the fields that say what slots start with."""
        fresh = self._optimizer
        if int(fresh._iterations):
            fresh = type(fresh).from_config(fresh.get_config())
            fresh.build(self._variables)
        positions = {id(one): index for index, one in enumerate(self._optimizer.variables)}
        values, copies = [], []
        for name in names:
            starts = [(variable, fresh.variables[positions[id(self._state[of_variable[name]])]])
                      for variable, of_variable in zip(self._variables, slots)
                      if name in of_variable]
            arrays = [keras.ops.convert_to_numpy(slot) for _, slot in starts]
            filled = [array.flat[0] for array in arrays if array.size]
            if all(np.all(array == filled[0]) for array in arrays if array.size):
                values.append(float(filled[0]) if filled else 0.0)
            elif all(np.array_equal(array, keras.ops.convert_to_numpy(variable))
                     for array, (variable, _) in zip(arrays, starts)):
                values.append(0.0)
                copies.append(name)
            else:
                raise ValueError(f"{self._name} starts {name} with values that differ between "
                                 "elements; expected one number, or the variable")
        return {"slots": names, "initial_values": values, "slots_starting_as_variable": copies}


def _rate_of(optimizer):
    """Returns the learning rate or schedule of an optimizer for the cluster."""
    rate = optimizer._learning_rate
    if not isinstance(rate, keras.optimizers.schedules.LearningRateSchedule):
        return float(rate)
    if is_known_schedule(optimizer):
        return rate
    return ProgramSchedule(encoded_program(
        type(rate).__name__, lambda step: (keras.ops.cast(rate(step), "float32"),),
        [[array_spec((), "int32")]], [False]))


def _plain_config(optimizer):
    """Returns the arguments that all optimizers of Keras have."""
    names = ("clipnorm", "clipvalue", "global_clipnorm", "use_ema", "ema_momentum",
             "ema_overwrite_frequency", "gradient_accumulation_steps", "name")
    return {name: getattr(optimizer, name) for name in names}


def _pairs(new, old, order):
    """Yields (variable of `new`, variable of `old`): optimizers with the same attributes."""
    for name, value in vars(new).items():
        source = vars(old).get(name)
        if isinstance(value, keras.Variable):
            yield value, source
        elif isinstance(value, list) and len(value) == len(order) and name not in (
                "_trainable_variables", "_variables"):
            yield from ((one, source[index]) for one, index in zip(value, order)
                        if isinstance(one, keras.Variable))


def for_cluster(optimizer, variables):
    """Returns an optimizer for the cluster with the state of another, and where it is from.

    What Muster does not have of the optimizer is a program.

    Args:
      optimizer: built. A LossScaleOptimizer gives another one.
      variables: its trainable variables in the order of the cluster's weights.

    Returns:
      (optimizer, {id of its variable: the variable of `optimizer`}).

    Raises:
      ValueError: the update cannot be exported; names the optimizer.
    """
    old = inner_optimizer(optimizer)
    is_in_order = all(one is other for one, other in zip(old._trainable_variables, variables))
    if is_known_optimizer(old) and is_known_schedule(old) and is_in_order:
        return optimizer, {id(variable): variable for variable in optimizer.variables}
    slots = {}
    if is_known_optimizer(old):
        new = type(old).from_config({**old.get_config(), "learning_rate": _rate_of(old)})
    else:
        fields, slots = _Exporter(old).export()
        new = ProgramOptimizer(fields, learning_rate=_rate_of(old), **_plain_config(old))
    outer = new
    if optimizer is not old:
        outer = keras.optimizers.LossScaleOptimizer(
            new, optimizer.initial_scale, optimizer.dynamic_growth_steps, name=optimizer.name)
    outer.build(variables)
    positions = {id(variable): index for index, variable in enumerate(old._trainable_variables)}
    order = [positions[id(variable)] for variable in variables]
    pairs = list(_pairs(new, old, order))
    if optimizer is not old:
        pairs += _pairs(outer, optimizer, order)
    for name, of_slot in getattr(new, "slots", {}).items():
        pairs += [(one, slots[index][name]) for one, index in zip(of_slot, order)
                  if name in slots[index]]
    for one, source in pairs:
        one.assign(source)
    return outer, {id(one): source for one, source in pairs}
