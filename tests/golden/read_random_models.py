"""Loads random models that Muster has trained into Keras.

    python read_random_models.py MADE SAVED

MADE is a folder of write_random_models.py. Muster has taken one step with each model that
SAVED/names.json names, and saved it as SAVED/<name>.keras. Keras must come to the recorded
logs and weights with the steps that are left.
"""

import os

os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""
os.environ["KERAS_BACKEND"] = "tensorflow"

import json
import pathlib
import sys
import warnings

import keras
import numpy as np

from random_models import models, record

TOLERANCE = 1e-5


def tensor(described):
    dtype = object if described["dtype"] == "string" else described["dtype"]
    return np.array(described["values"], dtype).reshape(described["shape"])


def numbered(tensors, prefix):
    found = []
    while f"{prefix}{len(found)}" in tensors:
        found.append(tensor(tensors[f"{prefix}{len(found)}"]))
    return found


def compare(name, got, expected):
    scale = max(1, np.abs(expected).max(initial=0))
    np.testing.assert_allclose(got, expected, rtol=0, atol=TOLERANCE * scale, err_msg=name)


def check(case, path):
    keras.backend.clear_session()
    # Keras warns if it skips part of a file.
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # As the model was drawn.
        warnings.filterwarnings("ignore", "Layer .* was passed an input with a mask")
        model = record.load(path)
    made = models.Made(model, *(numbered(case["inputs"], prefix) for prefix in ("x_", "y_", "w_")))
    got = record.train(model, made, 1, record.STEPS)
    expected = {name: tensor(value) for name, value in case["outputs"].items()}
    for name, value in expected.items():
        if name.startswith("log_"):
            compare(name, got[name], value[1:])
        elif name.startswith("weight_"):
            compare(name, got[name], value)


def main():
    made, saved = (pathlib.Path(folder) for folder in sys.argv[1:])
    cases = json.loads((made / "random_models.json").read_text())["cases"]
    cases = {case["name"]: case for case in cases}
    failed = 0
    for name in json.loads((saved / "names.json").read_text()):
        try:
            check(cases[name], saved / f"{name}.keras")
        except Exception as error:  # All cases are tried.
            failed += 1
            print(f"{name}: {type(error).__name__}: {error}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
