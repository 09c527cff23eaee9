"""ScheduleFreeAdamW as Keras documents it, and as it computes with JAX.

With TensorFlow, `momentum_old = momentum.value` in its update_step() is the variable and not its
value, so it is read after the variable has been updated. read_before_updates() replaces it by the
value.
"""

import contextlib

import keras
import tensorflow as tf

# The base class of keras.Variable that defines `value`.
_Variable = next(c for c in keras.Variable.__mro__ if "value" in vars(c))
_variable = _Variable.value
_copy = property(lambda variable: tf.identity(_variable.fget(variable)))


@contextlib.contextmanager
def _value_is(what):
    before = _Variable.value
    _Variable.value = what
    try:
        yield
    finally:
        _Variable.value = before


def _within(what, function):
    def call(*arguments):
        with _value_is(what):
            return function(*arguments)

    return call


def read_before_updates():
    """Changes ScheduleFreeAdamW for the rest of the program."""
    optimizer = keras.optimizers.ScheduleFreeAdamW
    if "assign" in vars(optimizer):
        return
    optimizer.update_step = _within(_copy, optimizer.update_step)
    for name in ("assign", "assign_add", "assign_sub"):
        setattr(optimizer, name, _within(_variable, getattr(optimizer, name)))
