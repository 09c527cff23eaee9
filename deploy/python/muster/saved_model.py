"""Checks that the saved form of a compiled model describes it completely.

The cluster gets a model as the file that Keras saves, with configs and variables. If the
config of an object lacks an attribute, the attribute is added if the object's class has
such an argument. Otherwise saving the model fails.
"""

import contextlib
import functools
import inspect
import types

import numpy as np

# Attributes that do not affect results, or that change when an object is built.
_IGNORED = frozenset({
    "autocast", "build", "built", "dtype_policy", "initializer", "input_spec", "name", "optimizer",
    "seed", "use_cudnn",
})
_UNKNOWN = object()


def _is_of_keras(thing):
    return type(thing).__module__.split(".")[0] == "keras"


def _plain_function(value):
    if isinstance(value, functools.partial):
        return ("partial", _plain(value.func), _plain(value.args), _plain(value.keywords))
    return (value.__module__, value.__qualname__)


def _plain(value):
    """Returns a form of `value` that can be compared, or _UNKNOWN."""
    if value is None or isinstance(value, (bool, str, int, float, complex, bytes)):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return _plain(value.tolist()) if value.dtype != object else _UNKNOWN
    if isinstance(value, (list, tuple)):
        items = tuple(_plain(item) for item in value)
        return _UNKNOWN if any(item is _UNKNOWN for item in items) else items
    if isinstance(value, (set, frozenset)):
        return _plain(sorted(value, key=str))
    if isinstance(value, dict):
        return _plain([(key, value[key]) for key in sorted(value, key=str)])
    if isinstance(value, (types.FunctionType, types.BuiltinFunctionType, type, functools.partial)):
        return _plain_function(value)
    if _is_of_keras(value) and not hasattr(value, "variables") and not hasattr(value, "assign"):
        # A regularizer, a constraint, or a schedule.
        return _plain([type(value).__name__, _attributes(value)])
    if hasattr(value, "assign"):
        return _UNKNOWN  # A variable, which is saved separately.
    if getattr(value, "shape", None) == () and hasattr(value, "__array__"):
        return np.asarray(value).item()
    return _UNKNOWN


def _attributes(thing):
    """Returns the attributes of an object that its class documents."""
    found = {name: value for name, value in vars(thing).items()
             if not name.startswith("_") and name not in _IGNORED
             and not name.endswith("_initializer")}
    # Arguments of the function that a loss or a metric wraps.
    found.update(getattr(thing, "_fn_kwargs", None) or {})
    if getattr(thing, "weight_decay", None) and any(
            getattr(thing, "_exclude_from_weight_decay" + suffix, None)
            for suffix in ("", "_pattern")):
        found["exclude_from_weight_decay()"] = True
    # The policy of an input has no effect: its config has the dtype of the data.
    is_input = type(thing).__name__ == "InputLayer"
    if not is_input and (hasattr(thing, "compute_dtype") or hasattr(thing, "_dtype")):
        found["dtype"] = getattr(thing, "compute_dtype", None) or getattr(thing, "_dtype")
    return found


def _differences(thing, rebuilt):
    """Yields (attribute, value, value of the rebuilt object)."""
    mine, others = _attributes(thing), _attributes(rebuilt)
    for name, value in mine.items():
        if name not in others and not name.endswith("()"):
            continue
        value, other = _plain(value), _plain(others.get(name))
        if _UNKNOWN not in (value, other) and value != other and not _are_nan(value, other):
            yield name, value, other


def _are_nan(one, other):
    return isinstance(one, float) and isinstance(other, float) and one != one and other != other


def _overridden_methods(thing):
    """Returns the methods that are replaced for this object only."""
    return [name for name, value in vars(thing).items()
            if callable(value) and callable(getattr(type(thing), name, None))
            and not hasattr(value, "__wrapped__")]


def _rebuild(thing, missing):
    # Gets a new config each time, because from_config() may change its argument.
    return type(thing).from_config({**thing.get_config(), **missing})


def missing_arguments(thing, what):
    """Returns the arguments that `thing.get_config()` leaves out, with their values.

    Args:
      thing: a loss, metric, optimizer or layer.
      what: its name in error messages.

    Raises:
      ValueError: `thing` differs from its config in an attribute that is not an argument
        of its class; names it.
    """
    methods = _overridden_methods(thing)
    if methods:
        raise ValueError(f"{what}: {methods[0]}() is replaced by Python code, which cannot run "
                         "in the cluster")
    config = thing.get_config()
    try:
        rebuilt = _rebuild(thing, {})
    except Exception:  # pylint: disable=broad-exception-caught
        return {}  # A custom class, which the cluster refuses by name.
    parameters = inspect.signature(type(thing).__init__).parameters
    missing = {name: _attributes(thing)[name] for name, _, _ in _differences(thing, rebuilt)
               if name in parameters and name not in config}
    if missing:
        rebuilt = _rebuild(thing, missing)
    for name, value, other in _differences(thing, rebuilt):
        if name.endswith("()"):
            raise ValueError(f"{what}: {name} is not supported, because a saved model does not "
                             "have it")
        raise ValueError(f"{what}: {name} is {value!r}, but the saved model would have {other!r}; "
                         f"pass {name} to {type(thing).__name__}() in place of setting it")
    return missing


def check_config(thing, what):
    """Raises ValueError unless a copy made from the config of an object has its attributes.

    Args:
      thing: an object of a class of the user's own.
      what: its name in error messages.
    """
    try:
        rebuilt = _rebuild(thing, {})
    except Exception:  # pylint: disable=broad-exception-caught
        return  # The process that exports the model reports the error.
    for name, value, other in _differences(thing, rebuilt):
        raise ValueError(f"{what}: {name} is {value!r}, but {other!r} in a copy that is made from "
                         "get_config(): add it to get_config(), or set KERAS_BACKEND=jax")


def _describe_variable(variable):
    return {"shape": tuple(variable.shape), "dtype": str(variable.dtype),
            "trainable": bool(variable.trainable),
            "regularizer": _plain(variable.regularizer),
            "constraint": _plain(variable.constraint)}


def _check_variables(layer, missing, what):
    """Compares the variables of a built layer with those that its config would create."""
    try:
        rebuilt = _rebuild(layer, missing)
        rebuilt.build_from_config(layer.get_build_config())
    except Exception:  # pylint: disable=broad-exception-caught
        return
    if not rebuilt.built:
        return
    if len(rebuilt.variables) != len(layer.variables):
        raise ValueError(f"{what} has {len(layer.variables)} variables, but its config makes "
                         f"{len(rebuilt.variables)}; an argument was set after it was built")
    for variable, other in zip(layer.variables, rebuilt.variables):
        mine, others = _describe_variable(variable), _describe_variable(other)
        for name, value in mine.items():
            if value != others[name]:
                raise ValueError(
                    f"{what}: {name} of {variable.name} is {value!r}, but the layer's config says "
                    f"{others[name]!r}; Keras' fit() takes that of the variable, a saved model "
                    "that of the config")


def _check_optimizer_variables(optimizer, missing, what):
    """Raises ValueError if an argument such as momentum was set after building."""
    import keras

    stand_ins = []
    for variable in optimizer._trainable_variables:
        stand_ins.append(keras.Variable(np.zeros((1,) * len(variable.shape), "float32"),
                                        name=variable.name))
        stand_ins[-1]._path = variable.path  # Muon selects variables by path.
    rebuilt = _rebuild(optimizer, missing)
    rebuilt.build(stand_ins)
    if len(rebuilt.variables) != len(optimizer.variables):
        raise ValueError(f"{what} has {len(optimizer.variables)} variables, but its config makes "
                         f"{len(rebuilt.variables)}; an argument was set after it was built")


def _compiled_objects(config, what=""):
    """Yields (name for errors, object) of the losses, metrics and optimizers."""
    if isinstance(config, dict):
        for name, value in config.items():
            yield from _compiled_objects(value, f"{what}[{name!r}]" if what else str(name))
    elif isinstance(config, (list, tuple)):
        for value in config:
            yield from _compiled_objects(value, what)
    elif hasattr(config, "get_config") and _is_of_keras(config):
        yield f"{what} {type(config).__name__}", config


def _check_optimizer_is_compiled(model, compiled):
    # compile() may wrap it to scale the loss.
    if compiled not in (model.optimizer, getattr(model.optimizer, "inner_optimizer", None)):
        raise ValueError("model.optimizer was replaced after compile(), which a saved model does "
                         "not record; pass the optimizer to compile()")


def _layers(model):
    for layer in model._flatten_layers(include_self=False, recursive=True):
        # Nested models are replaced by their layers.
        if _is_of_keras(layer) and not hasattr(layer, "layers"):
            yield layer


def _is_embedding(thing):
    import keras

    return type(thing) is keras.layers.Embedding


def _partly_frozen(model):
    """Returns the layers that are frozen around layers that train.

    Keras trains the inner layers. In the cluster a frozen layer freezes all inside of it.
    """
    return [layer for layer in model._flatten_layers(include_self=False, recursive=True)
            if not layer.trainable and any(one.trainable for one in layer.variables)]


def _complete(thing, missing):
    return {**type(thing).get_config(thing), **missing}


@contextlib.contextmanager
def complete_configs(model, updates_all_rows=False):
    """Within the context, saving the model writes complete configs.

    Args:
      updates_all_rows: True if a step updates all rows of an Embedding, as in Keras. Otherwise
        it updates those that occur in its batch.

    Raises:
      ValueError: as missing_arguments(); or a variable of a layer differs from the
        layer's config.
    """
    compiled = getattr(getattr(model, "_compile_config", None), "config", {})
    if compiled:
        _check_optimizer_is_compiled(model, compiled.get("optimizer"))
    things = list(_compiled_objects(compiled))
    things += [(f"layer {layer.name}", layer) for layer in _layers(model)]
    replaced = []

    def add_to_config(thing, missing):
        vars(thing)["get_config"] = functools.partial(_complete, thing, missing)
        replaced.append(thing)

    try:
        partly_frozen = {id(layer): layer for layer in _partly_frozen(model)}
        for what, thing in {id(thing): (what, thing) for what, thing in things}.values():
            missing = missing_arguments(thing, what)
            if hasattr(thing, "build_from_config") and thing.built:
                _check_variables(thing, missing, what)
            elif getattr(thing, "_trainable_variables", None):
                _check_optimizer_variables(thing, missing, what)
            if updates_all_rows and _is_embedding(thing):
                missing["updates"] = "all_rows"  # Not an argument of Keras.
            if partly_frozen.pop(id(thing), None) is not None:
                missing["trainable"] = True
            if missing:
                add_to_config(thing, missing)
        for layer in partly_frozen.values():
            add_to_config(layer, {"trainable": True})
        yield
    finally:
        for thing in replaced:
            vars(thing).pop("get_config", None)
