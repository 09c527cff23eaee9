"""Weights by the paths of their variables, in files of safetensors: save_weights(), load_params()
and load_weights()."""

import os

import numpy as np
from muster import safetensors_file

SUFFIX = ".safetensors"


def _checked_path(path):
    path = os.fspath(path)
    if not path.endswith(SUFFIX):
        raise ValueError(f"path is {path}; expected a name that ends in {SUFFIX}")
    return path


def _unique(pairs):
    """Returns {name: value}. Raises ValueError if a name occurs twice."""
    found = {}
    for name, value in pairs:
        if name in found:
            raise ValueError(f"two variables have the path {name}; give their layers other names")
        found[name] = value
    return found


def _variables(model):
    if not model.built:
        raise ValueError(f"the model {model.name} has no variables yet; call it, or model.build()")
    # Models have different names in each process, and some are part of the paths.
    return _unique((variable.path.removeprefix(f"{model.name}/"), variable)
                   for variable in model.weights)


def _is_model(weights):
    import sys

    keras = sys.modules.get("keras")
    return keras is not None and isinstance(weights, keras.Model)


def _leaves(params):
    """Returns ({path: leaf} of a pytree, in its order, and its structure)."""
    import jax
    from muster.jax_training import path_text

    leaves, structure = jax.tree_util.tree_flatten_with_path(params)
    return _unique((path_text(path), leaf) for path, leaf in leaves), structure


def _array(variable):
    """Returns the value of a variable of Keras in its own dtype, which some backends convert."""
    import keras

    value = np.asarray(keras.ops.convert_to_numpy(variable.value))
    return value.astype(safetensors_file.dtype_named(variable.dtype), copy=False)


def save_weights(weights, path):
    """Writes weights into a file of safetensors, by the paths of their variables.

    Args:
      weights: a built model of Keras, such as one that fit() has trained; or the parameters
        that train() returns, whose paths have dots, as in "layers.0.kernel".
      path: of the file to write; ends in .safetensors.

    Raises:
      ValueError: two variables have the same path, or one has a dtype that the format lacks.
      OSError: the file cannot be written.
    """
    path = _checked_path(path)
    if _is_model(weights):
        tensors = {name: _array(variable) for name, variable in _variables(weights).items()}
    else:
        tensors = {name: np.asarray(leaf) for name, leaf in _leaves(weights)[0].items()}
    safetensors_file.write(path, tensors)


def _matched(path, wanted):
    """Returns the tensors of a file as {name: array}, in the order and with the dtypes of `wanted`.

    Args:
      wanted: {name: (shape, dtype)}.

    Raises:
      ValueError: the file has other names, shapes or kinds of numbers; names them.
    """
    found = safetensors_file.read(path)
    missing = [name for name in wanted if name not in found]
    others = [name for name in found if name not in wanted]
    if missing or others:
        raise ValueError(f"{path} does not match: it lacks {_some(missing)}, and has "
                         f"{_some(others)} in addition. Names of layers must be the same")
    arrays = {}
    for name, (shape, dtype) in wanted.items():
        array = found[name]
        if array.shape != tuple(shape):
            raise ValueError(f"{path}: {name} has shape {list(array.shape)}; expected "
                             f"{list(shape)}")
        if array.dtype != dtype:
            if not (_is_floating(array.dtype) and _is_floating(dtype)):
                raise ValueError(f"{path}: {name} has dtype {array.dtype}; expected {dtype}")
            array = array.astype(dtype)
        arrays[name] = array
    return arrays


def _is_floating(dtype):
    return dtype.name.startswith(("float", "bfloat"))


def _some(names):
    if not names:
        return "nothing"
    return ", ".join(names[:5]) + (f" and {len(names) - 5} others" if len(names) > 5 else "")


def load_model_weights(model, path):
    """Loads a file of save_weights() into a built model. See load_weights() of api.py."""
    variables = _variables(model)
    arrays = _matched(os.fspath(path), {
        name: (variable.shape, safetensors_file.dtype_named(variable.dtype))
        for name, variable in variables.items()})
    for name, variable in variables.items():
        variable.assign(arrays[name])


def load_params(params, path):
    """Returns parameters with the values in a file of safetensors.

    Args:
      params: a pytree of arrays with the structure, shapes and dtypes of the result.
      path: of a file of save_weights(), or another one with the same names.

    Raises:
      ValueError: the file does not match, or is damaged; says where.
      OSError: the file cannot be read.
    """
    import jax

    leaves, structure = _leaves(params)
    arrays = _matched(_checked_path(path), {
        name: (np.shape(leaf), np.asarray(leaf).dtype) for name, leaf in leaves.items()})
    return jax.tree_util.tree_unflatten(structure, [
        jax.numpy.asarray(array) for array in arrays.values()])
