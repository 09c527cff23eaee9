"""Transformations of optax as optimizers of Keras. Needs Keras on JAX."""

import jax
from jax.extend import core

import keras
from muster.program_export import restricted

_OTHERS = ("; expected a transformation that treats each array by itself. muster.Optax() takes "
           "global_clipnorm and gradient_accumulation_steps")


def is_transformation(thing):
    """True for a GradientTransformation of optax."""
    return callable(getattr(thing, "init", None)) and callable(getattr(thing, "update", None))


class Optax(keras.optimizers.Optimizer):
    """An optimizer of optax: a transformation that treats each array of the parameters by itself.

    Args:
      transformation: such as optax.adamw(1e-3), with its schedule.
      learning_rate: a factor of all updates, which callbacks can change.
      options: of all optimizers of Keras, such as global_clipnorm and
        gradient_accumulation_steps.
    """

    def __init__(self, transformation, learning_rate=1.0, **options):
        super().__init__(learning_rate=learning_rate, **options)
        self._transformation = transformation
        self._structure = None

    def set_structure(self, structure):
        """Sets the pytree of the parameters: a function of a list of arrays. Before build()."""
        self._structure = structure

    def build(self, variables):
        if self.built:
            return
        super().build(variables)
        params = self._tree([variable.value for variable in variables])
        state = self._transformation.init(params)
        leaves, self._state_structure = jax.tree_util.tree_flatten_with_path(state)
        self._trace(params, state)
        self._updates = [restricted(self._traced, [index]) for index in range(len(variables))]
        self._classify([leaf for _, leaf in leaves])
        self._slots = {}
        for index, owner in self._owners.items():
            path, leaf = leaves[index]
            slot = self.add_variable(leaf.shape, dtype=str(leaf.dtype),
                                     name=f"{variables[owner].path.replace('/', '_')}_"
                                          f"{self._slot_name(path, params)}")
            slot.assign(leaf + 0)
            self._slots[index] = slot

    def _tree(self, values):
        return values if self._structure is None else self._structure(values)

    def _trace(self, params, state):
        def update(gradients, state, params):
            updates, new_state = self._transformation.update(gradients, state, params)
            return jax.tree.leaves(updates), jax.tree.leaves(new_state)

        self._traced = jax.make_jaxpr(update)(params, state, params)

    def _slot_name(self, path, params):
        """Returns the name of a leaf of the state: the fields above the parameter's path."""
        depth = len(jax.tree_util.tree_flatten_with_path(params)[0][0][0])
        names = [key.name for key in path[:len(path) - depth] if hasattr(key, "name")]
        return names[-1] if names else "state"

    def _classify(self, leaves):
        """Finds out which leaves of the state belong to which variable, and what others are."""
        count = len(self._trainable_variables)
        arrays = {**{index: index for index in range(count)},
                  **{count + len(leaves) + index: index for index in range(count)}}
        self._owners, self._counts, self._constants = {}, set(), {}
        for variable, (_, used) in zip(self._trainable_variables, self._updates):
            others = [arrays[index] for index in used if index in arrays]
            if any(self._trainable_variables[other] is not variable for other in others):
                raise ValueError(f"the update of {variable.path} depends on other arrays" + _OTHERS)
        for index, leaf in enumerate(leaves):
            closed, used = restricted(self._traced, [count + index])
            owners = {arrays[one] for one in used if one in arrays}
            if not owners:
                self._classify_shared(index, leaf, closed, used, count, leaves)
            elif len(owners) == 1:
                self._owners[index] = owners.pop()
            else:
                raise ValueError("a part of the transformation's state depends on several arrays"
                                 + _OTHERS)

    def _classify_shared(self, index, leaf, closed, used, count, leaves):
        """Classifies a leaf that depends on no gradient."""
        is_constant = closed.jaxpr.outvars[0] is closed.jaxpr.invars[count + index]
        if is_constant:
            self._constants[index] = leaf
            return
        values = [jax.numpy.zeros(variable.aval.shape, variable.aval.dtype)
                  for variable in closed.jaxpr.invars]
        values[count:count + len(leaves)] = leaves

        def after(start):
            values[count + index] = jax.numpy.full(leaf.shape, start, leaf.dtype)
            return int(core.jaxpr_as_fun(closed)(*values)[0])

        counts = (leaf.shape == () and jax.numpy.issubdtype(leaf.dtype, jax.numpy.integer)
                  and used == [count + index] and int(leaf) == 0
                  and all(after(start) == start + 1 for start in (0, 1, 7, 100)))
        if not counts:
            raise ValueError("a part of the transformation's state is neither an array for each "
                             "parameter nor the number of updates" + _OTHERS)
        self._counts.add(index)

    def update_step(self, gradient, variable, learning_rate):
        position = self._get_variable_index(variable)
        count = len(self._trainable_variables)
        slots = [index for index, owner in self._owners.items() if owner == position]
        closed, _ = restricted(self._traced, [position, *(count + index for index in slots)])
        state_count = len(closed.jaxpr.invars) - 2 * count
        values = [None] * len(closed.jaxpr.invars)
        for index in range(state_count):
            values[count + index] = self._state_value(index)
        values[position], values[count + state_count + position] = gradient, variable.value
        values = [jax.numpy.zeros(one.aval.shape, one.aval.dtype) if value is None else value
                  for value, one in zip(values, closed.jaxpr.invars)]
        update, *new_slots = core.jaxpr_as_fun(closed)(*values)
        for index, value in zip(slots, new_slots):
            self._slots[index].assign(value)
        self.assign(variable, variable.value + learning_rate * update)

    def _state_value(self, index):
        if index in self._counts:
            return jax.numpy.asarray(self.iterations, "int32")
        return self._slots[index].value if index in self._slots else self._constants[index]

    def get_config(self):
        return {**super().get_config(), "transformation": self._transformation}


def with_structure(optimizer, structure):
    """Returns the optimizer for the arrays of a pytree.

    Args:
      optimizer: of Keras, its name, or a transformation of optax.
      structure: the pytree of a list of its trained arrays, a function.
    """
    if is_transformation(optimizer):
        optimizer = Optax(optimizer)
    if isinstance(optimizer, Optax):
        optimizer.set_structure(structure)
    return optimizer
