"""The arrays of a model's inputs or outputs, from the structures that fit() accepts."""

import warnings
from collections.abc import Mapping


def positions(structure, tensors):
    """Returns `structure` with each tensor replaced by its position in `tensors`."""
    if isinstance(structure, Mapping):
        return {key: positions(value, tensors) for key, value in structure.items()}
    if isinstance(structure, (list, tuple)):
        return [positions(value, tensors) for value in structure]
    return next(index for index, tensor in enumerate(tensors) if tensor is structure)


def _has_keys(value, keys, what):
    """True if a mapping has these keys. Warns of other keys, which Keras ignores."""
    if not set(keys) <= set(value):
        return False
    unused = [key for key in value if key not in set(keys)]
    if unused:
        warnings.warn(f"{what} has {', '.join(map(repr, unused))}, which the model does not take",
                      stacklevel=2)
    return True


def _is_only_in_list(value):
    return isinstance(value, (list, tuple)) and len(value) == 1 and hasattr(value[0], "shape")


class Structure:
    """The structure of a model's inputs or outputs.

    Args:
      names: names of the inputs or outputs, in order.
      places: the structure that the model was created with, as positions() returns it.
    """

    def __init__(self, names, places=None):
        self.names = names
        if places is None:
            places = list(range(len(names))) if len(names) > 1 else 0
        self._places = places

    def _expected(self, places=None):
        places = self._places if places is None else places
        if isinstance(places, dict):
            return "{" + ", ".join(f"{key!r}: {self._expected(value)}"
                                   for key, value in places.items()) + "}"
        if isinstance(places, list):
            return "[" + ", ".join(map(self._expected, places)) + "]"
        return str(self.names[places])

    def arrange(self, value, what):
        """Returns the parts of `value`, in the order of the names.

        Args:
          value: an array if there is one name; a dict by names; or dicts, lists and
            tuples in the structure of the model.
          what: its name in error messages.

        Raises:
          ValueError: `value` has another structure.
        """
        if isinstance(value, Mapping) and _has_keys(value, self.names, what):
            return [value[name] for name in self.names]
        found = {}
        self._collect(value, self._places, what, found)
        return [found[index] for index in range(len(self.names))]

    def _collect(self, value, places, what, found):
        if isinstance(places, int):
            if isinstance(value, Mapping):
                raise self._misfit(what, value)
            found[places] = value[0] if _is_only_in_list(value) else value
            return
        if isinstance(places, dict):
            if isinstance(value, Mapping) and _has_keys(value, places, what):
                parts = [(value[key], place) for key, place in places.items()]
            elif isinstance(value, (list, tuple)) and len(value) == len(places):
                parts = [(part, places[key]) for part, key in zip(value, sorted(places))]
            else:
                raise self._misfit(what, value)
        elif isinstance(value, (list, tuple)) and len(value) == len(places):
            parts = list(zip(value, places))
        elif len(places) == 1 and not isinstance(value, Mapping):
            parts = [(value, places[0])]
        else:
            raise self._misfit(what, value)
        for part, place in parts:
            self._collect(part, place, what, found)

    def _misfit(self, what, value):
        if isinstance(value, Mapping):
            came = f"has the names {sorted(map(str, value))}"
        elif isinstance(value, (list, tuple)):
            came = f"is a {type(value).__name__} of {len(value)}"
        else:
            came = f"is a {type(value).__name__}"
        return ValueError(f"{what} {came}; expected {self._expected()}")


def _is_type(value):
    return isinstance(value, tuple) and len(value) == 2 and isinstance(value[1], str)


def types_in(example):
    """Returns the (shape, dtype) in a structure of lists and dicts, in Keras' order."""
    if example is None:
        return []
    if _is_type(example):
        return [example]
    values = [example[key] for key in sorted(example)] if isinstance(example, dict) else example
    return [leaf for value in values for leaf in types_in(value)]


def with_values(example, values):
    """Returns a structure of (shape, dtype) with the next of `values` in place of each."""
    values = iter(values)

    def replaced(one):
        if one is None:
            return None
        if _is_type(one):
            return next(values)
        if isinstance(one, dict):
            return {key: replaced(one[key]) for key in sorted(one)}
        return type(one)(replaced(inner) for inner in one)

    return replaced(example)
