"""Weights of a model that are loaded when they are looked at."""

import functools

import keras
import numpy as np

# Methods that may run functions which TensorFlow has compiled. Those read variables unseen.
_COMPUTING = frozenset((
    "evaluate", "export", "fit", "make_predict_function", "make_test_function", "predict",
    "predict_function", "predict_on_batch", "predict_step", "test_function", "test_on_batch",
    "test_step", "train_on_batch"))


def _named_as(kind, subclass):
    for name in ("__name__", "__qualname__", "__module__"):
        setattr(subclass, name, getattr(kind, name))
    return subclass


@functools.lru_cache(maxsize=None)
def _variable_class(kind):
    """Returns a subclass of a class of variables that loads them before their first use."""

    class Expired(kind):
        @property
        def _value(self):
            vars(self)["_muster_weights"].load()
            return self._value  # The class is `kind` again.

        @_value.setter
        def _value(self, value):
            vars(self)["_muster_weights"].load()
            self._value = value

    return _named_as(kind, Expired)


@functools.lru_cache(maxsize=None)
def _model_class(kind):
    """Returns a subclass of a class of models that loads the weights before it computes."""

    class Expired(kind):
        def __getattribute__(self, name):
            if name in _COMPUTING:
                object.__getattribute__(self, "__dict__")["_muster_weights"].load()
            return kind.__getattribute__(self, name)  # The class may be `kind` again.

    return _named_as(kind, Expired)


class LazyWeights:
    """Loads the weights of a model when its variables are read or assigned for the first time.

    Args:
      model: of Keras, built.
      load: loads the values of all variables, and the state of the optimizer.
      kept: variables that `load` must not change.

    Attributes:
      are_loaded: True after the first use since expire().
    """

    def __init__(self, model, load, kept):
        self._model = model
        self._load = load
        kept_ids = {id(variable) for variable in kept}
        self._kept = kept
        self._variables = [variable for variable in
                           {id(one): one for one in
                            [*model.variables, *model.optimizer.variables]}.values()
                           if id(variable) not in kept_ids]
        self._originals = []  # (object, its class) while the weights are expired.
        self._loaded = None  # Values of the variables after load().
        self.are_loaded = False

    def expire(self):
        """Makes the next use of the model load its weights."""
        self.are_loaded = False
        for thing in [*self._variables, self._model]:
            make = _model_class if thing is self._model else _variable_class
            self._originals.append((thing, type(thing)))
            vars(thing)["_muster_weights"] = self
            object.__setattr__(thing, "__class__", make(type(thing)))

    def restore(self):
        """Makes the model an ordinary one again, without loading."""
        for thing, kind in self._originals:
            object.__setattr__(thing, "__class__", kind)
            vars(thing).pop("_muster_weights", None)
        self._originals = []

    def load(self):
        """Loads the weights now."""
        self.restore()
        kept = [np.array(keras.ops.convert_to_numpy(variable)) for variable in self._kept]
        self._load()
        for variable, value in zip(self._kept, kept):
            variable.assign(value)
        self._loaded = self._values()
        self.are_loaded = True

    def changed(self):
        """Returns the variables that were assigned since load(), without the kept ones."""
        if not self.are_loaded:
            return []
        return [variable for variable, value, other in
                zip(self._variables, self._values(), self._loaded)
                if not np.array_equal(value, other, equal_nan=value.dtype.kind == "f")]

    def _values(self):
        return [np.array(keras.ops.convert_to_numpy(variable)) for variable in self._variables]
