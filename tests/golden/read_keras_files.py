"""Loads what Muster saved of the models in data/keras_files.json and
data/keras_string_files.json into Keras.

    python read_keras_files.py FOLDER

Muster has loaded each model, taken one step if it trains, and saved it. Keras must
predict what it predicts without training where there was none, and must come to the
recorded weights with the steps that are left.
"""

import os
import pathlib
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""
os.environ["KERAS_BACKEND"] = "tensorflow"

import json
import warnings

import keras
import numpy as np

from cases import schedule_free

STEPS = 3
TOLERANCE = 1e-5


def tensor(described):
    dtype = object if described["dtype"] == "string" else described["dtype"]
    return np.array(described["values"], dtype).reshape(described["shape"])


def numbered(tensors, prefix):
    found = []
    while f"{prefix}{len(found)}" in tensors:
        found.append(tensor(tensors[f"{prefix}{len(found)}"]))
    return found


def single(values):
    return values if len(values) > 1 else values[0]


def weights_of(layer):
    if isinstance(layer, keras.Model):
        return [weight for inner in layer.layers for weight in weights_of(inner)]
    if isinstance(layer, keras.layers.Normalization):
        return []
    return [weight for weight in layer.weights if "seed" not in weight.path]


def compare(what, got, expected):
    assert len(got) == len(expected), f"{what}: {len(got)} tensors, not {len(expected)}"
    for i, (one, other) in enumerate(zip(got, expected)):
        np.testing.assert_allclose(one, other, rtol=TOLERANCE, atol=TOLERANCE,
                                   err_msg=f"{what} {i}")


def check(case, path):
    x, y = numbered(case["inputs"], "x_"), numbered(case["inputs"], "y_")
    made = keras.models.load_model(path)
    if not case["config"]["trains"]:
        got = made.predict_on_batch(single(x))
        compare("prediction", got if isinstance(got, list) else [got],
                numbered(case["outputs"], "prediction_"))
        return
    for _ in range(STEPS - 1):
        made.train_on_batch(single(x), single(y))
    found = {}
    for weight in weights_of(made):
        found.setdefault(id(weight), weight)
    compare("weight", [np.asarray(weight) for weight in found.values()],
            numbered(case["outputs"], "weight_"))


def main():
    folder = pathlib.Path(sys.argv[1])
    data = pathlib.Path(__file__).parent / "data"
    cases = {}
    for file in ("keras_files.json", "keras_string_files.json"):
        for case in json.loads((data / file).read_text())["cases"]:
            cases[case["name"]] = case
    # Keras warns if it skips part of a file.
    warnings.simplefilter("error")
    schedule_free.read_before_updates()
    failed = 0
    for name in json.loads((folder / "names.json").read_text()):
        try:
            check(cases[name], folder / f"{name}.keras")
            print(f"{name}: OK")
        except Exception as error:  # All cases are tried.
            failed += 1
            print(f"{name}: {type(error).__name__}: {error}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
