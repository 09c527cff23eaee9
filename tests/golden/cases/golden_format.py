"""Serialization of cases. make_golden.py describes the format."""

import json
import math

import numpy as np


def seeded(seed):
    return np.random.default_rng(seed)


def normal(rng, *shape):
    """Standard normal float32 values with three decimals."""
    return rng.normal(size=shape).round(3).astype(np.float32)


def uniform(rng, *shape, low=0.0, high=1.0):
    return rng.uniform(low, high, size=shape).round(3).astype(np.float32)


def case(name, config, inputs, outputs):
    return {"name": name, "config": config, "inputs": inputs, "outputs": outputs}


def argument(value):
    """A Keras config value rounded to seven digits, with nested objects flattened.

    Keras stores a learning rate as float32, so 0.001 becomes 0.0010000000474974513.
    Seven digits restore the original value.
    """
    if isinstance(value, (float, np.floating)):
        return float(f"{value:.7g}")
    if isinstance(value, dict) and "class_name" in value and "config" in value:
        return {"class_name": value["class_name"], **argument(value["config"])}
    if isinstance(value, dict):
        return {key: argument(item) for key, item in value.items() if key != "name"}
    if isinstance(value, (list, tuple)):
        return [argument(item) for item in value]
    return value


def keras_config(keras_object):
    """{"class_name": ..., every constructor argument but the name}."""
    return {
        "class_name": type(keras_object).__name__,
        **argument(keras_object.get_config()),
    }


def file_text(cases):
    lines = [_case_text(one) for one in cases]
    return '{"cases":[\n' + ",\n".join(lines) + "\n]}\n"


def _case_text(one):
    return '{"name":%s,"config":%s,"inputs":%s,"outputs":%s}' % (
        json.dumps(one["name"]),
        _json(one["config"]),
        _named_text(one["inputs"]),
        _named_text(one["outputs"]),
    )


def _json(value):
    return json.dumps(value, separators=(",", ":"))


def _named_text(named):
    parts = []
    for name, value in named.items():
        is_tensor = isinstance(value, (np.ndarray, np.generic))
        text = _tensor_text(np.asarray(value)) if is_tensor else _json(value)
        parts.append(f"{json.dumps(name)}:{text}")
    return "{" + ",".join(parts) + "}"


def _tensor_text(array):
    if array.dtype.kind in "SUO":
        texts = [item.decode() if isinstance(item, bytes) else str(item) for item in array.ravel()]
        return f'{{"shape":{_json(list(array.shape))},"dtype":"string","values":{_json(texts)}}}'
    digits = 17 if array.dtype == np.float64 else 9
    values = ",".join(_number_text(item, digits) for item in array.ravel())
    shape = _json(list(array.shape))
    return f'{{"shape":{shape},"dtype":"{array.dtype.name}","values":[{values}]}}'


def _number_text(item, digits):
    if isinstance(item, (bool, np.bool_, np.integer)):
        return str(int(item))
    number = float(item)
    if not math.isfinite(number):
        return f'"{number}"'
    if number == 0:
        # A reader that parses "-0" as an integer would lose the sign.
        return "-0.0" if math.copysign(1, number) < 0 else "0"
    return f"{number:.{digits}g}"
