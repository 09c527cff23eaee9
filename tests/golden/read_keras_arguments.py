"""Loads the objects that Muster wrote into Keras, and compares them with those that Keras'
constructors make from the same arguments.

    python read_keras_arguments.py CASES.json

Each case has the output of Muster ("written"), the class, and the intended arguments: those of
"base", and "argument" with the value "meant" if there is one.
"""

import os
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""
os.environ["KERAS_BACKEND"] = "tensorflow"

import json
import pathlib
import warnings

import keras
import numpy as np

MODULES = {"schedules": keras.optimizers.schedules}
# Attributes that differ from object to object, or depend on how an object was made.
UNCOMPARED = {"seed", "_init_seed", "seed_generator", "generator", "_auto_config",
              "_initial_config", "_losses", "_lock", "_tracked"}
# In these arguments of optimizers, 0 means "off", as None does.
OFF_IF_ZERO = {"weight_decay", "clipnorm", "global_clipnorm", "clipvalue", "warmup_target",
               "adam_weight_decay", "rms_rate", "ema_overwrite_frequency",
               "gradient_accumulation_steps"}


# Muster's names of activations that are objects in Keras.
ACTIVATIONS = {
    "gelu_approximate": lambda x: keras.activations.gelu(x, approximate=True),
    "hard_sigmoid_keras2": lambda x: keras.ops.clip(0.2 * x + 0.5, 0, 1),
}


def class_of(case):
    module = MODULES.get(case["section"]) or getattr(keras, case["section"])
    if hasattr(module, case["class"]) and case["class"][0].isupper():
        return getattr(module, case["class"])
    # "l1_l2" is L1L2.
    return getattr(module, case["class"].title().replace("_", ""))


def value_of(value):
    """Returns the Keras object that {"class_name": ..., "config": {...}} describes."""
    if isinstance(value, list):
        return [value_of(entry) for entry in value]
    if not isinstance(value, dict):
        return value
    for module in (keras.layers, keras.initializers, keras.regularizers, keras.constraints,
                   keras.optimizers):
        if hasattr(module, value["class_name"]):
            return getattr(module, value["class_name"])(**value["config"])
    raise ValueError(f"there is no class {value['class_name']}")


def meant(case):
    arguments = {name: value_of(value) for name, value in case["base"].items()}
    if case["argument"]:
        arguments[case["argument"]] = value_of(case["meant"])
        if isinstance(case["meant"], str):
            arguments[case["argument"]] = ACTIVATIONS.get(case["meant"], case["meant"])
    written = case["written"]["config"]
    if case["section"] in ("layers", "losses", "metrics"):
        arguments["name"] = written["name"]
    if case["argument"] == "trainable" and {"layer", "cell", "cells"} & {*arguments}:
        # Also sets the inner layers, which the constructor does not change.
        del arguments["trainable"]
        made = class_of(case)(**arguments)
        made.trainable = case["meant"]
        return made
    return class_of(case)(**arguments)


def plain(value, depth=0):
    """Returns the contents of an object as numbers, texts, lists and dictionaries."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    if isinstance(value, dict):
        return {str(key): plain(entry, depth + 1) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(entry, depth + 1) for entry in value]
    if depth < 3 and hasattr(value, "get_config") and not isinstance(
            value, keras.random.SeedGenerator):
        return {"class": type(value).__name__, **plain(value.get_config(), depth + 1)}
    return getattr(value, "__name__", type(value).__name__)


def state(value):
    attributes = {name: plain(entry) for name, entry in vars(value).items()
                  if name not in UNCOMPARED and not name.startswith("_tf")}
    return {"config": plain(value.get_config()), "attributes": attributes}


def is_same(one, other, name=""):
    if name in OFF_IF_ZERO and not one and not other:
        return True
    # Muster may write one number for all axes as a list.
    if isinstance(one, list) != isinstance(other, list):
        numbers, number = (one, other) if isinstance(one, list) else (other, one)
        return (isinstance(number, (int, float)) and bool(numbers)
                and all(entry == number for entry in numbers))
    if isinstance(one, dict) and isinstance(other, dict):
        return not differences(one, other)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(is_same, one, other))
    return one == other


def differences(got, wanted):
    found = []
    for name in sorted({*got, *wanted}):
        # These identify an object in the process.
        if name in ("name", "registered_name", "shared_object_id", "build_config"):
            continue
        missing = "nothing"
        one, other = got.get(name, missing), wanted.get(name, missing)
        if not is_same(one, other, name):
            found.append(f"{name} is {one!r}, and not {other!r}")
    return found


def numbers_of(case, value):
    """Returns values that equivalent objects of several classes compute; None for others."""
    if case["section"] == "regularizers":
        return [float(value(np.array(weights, "float32"))) for weights in ([1, -2], [3])]
    if case["class"] in ("zeros", "ones", "constant"):
        return np.asarray(value((2,))).tolist()
    if case["class"] == "variance_scaling":
        return [value.scale, value.mode, value.distribution, value.seed]
    return None


def check(case):
    """Returns the differences of the case, or the exception if Keras refuses the arguments."""
    written = case["written"]
    if isinstance(written, str):
        return [] if written in ("accuracy", "crossentropy") else ["a name"]
    written = written["config"]
    try:
        wanted = meant(case)
        wanted_state = state(wanted)
    except Exception as error:
        # The class lacks the argument, and Muster does not write it.
        is_absent = f"unexpected keyword argument '{case['argument']}'" in str(error)
        return [] if is_absent and case["argument"] not in written else error
    try:
        got = keras.saving.deserialize_keras_object(case["written"])
        got_state = state(got)
    except Exception as error:
        return [f"Keras does not read it: {type(error).__name__}: {error}"]
    if isinstance(case["meant"], str) and case["meant"] in ACTIVATIONS:
        x = np.array([[-4, -1, 0.5, 3]], "float32")
        one, other = getattr(got, case["argument"])(x), getattr(wanted, case["argument"])(x)
        return [] if np.allclose(one, other, atol=1e-6) else [f"{one}, and not {other}"]
    numbers = numbers_of(case, wanted)
    if numbers is not None:
        got_numbers = numbers_of(case, got)
        return [] if got_numbers == numbers else [f"{got_numbers}, and not {numbers}"]
    if written.get("seed", 0) is None and "seed" in got_state["config"]:  # Both have drawn one.
        got_state["config"]["seed"] = wanted_state["config"].get("seed")
    found = differences(got_state["config"], wanted_state["config"])
    return found or differences(got_state["attributes"], wanted_state["attributes"])


def main():
    cases = json.loads(pathlib.Path(sys.argv[1]).read_text())
    warnings.simplefilter("ignore")
    failed, refused, compared = 0, [], set()
    for case in cases:
        what = (f"{case['section']}/{case['class']}({case['argument']}="
                f"{json.dumps(case['meant'])})")
        found = check(case)
        if isinstance(found, Exception):
            refused.append((case, what, found))
            continue
        compared.add((case["section"], case["class"], case["argument"]))
        if found:
            failed += 1
            print(f"{what}: " + "; ".join(found))
    for case, what, error in refused:
        if (case["section"], case["class"], case["argument"]) not in compared:
            failed += 1
            print(f"{what}: Keras takes no value: {type(error).__name__}: {error}")
        elif os.environ.get("SHOW"):
            print(f"REFUSED {what}: {type(error).__name__}: {str(error)[:150]!r}")
    print(f"{len(cases)} cases, {len(refused)} refused by Keras, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
