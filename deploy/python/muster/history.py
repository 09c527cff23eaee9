"""The history of a run, as the runtime writes it to summary.json."""

import json
import os

SUMMARY = "summary.json"


def read_history(run_dir):
    """Returns (epochs, logs) of the run in `run_dir`.

    `epochs` are numbered from 0; `logs` maps each name, such as "val_loss", to its
    values. NaN stands for a value that is not a finite number. The value of a metric that
    is a list, such as F1Score, is an array, as in Keras.

    Raises:
      FileNotFoundError: the run has not ended.
    """
    with open(os.path.join(run_dir, SUMMARY), encoding="utf-8") as file:
        logs = dict(json.load(file)["history"])
    epochs = logs.pop("epoch")
    return epochs, {name: [_value(value) for value in values] for name, values in logs.items()}


def _value(value):
    if isinstance(value, list):
        import numpy as np  # Of metrics that are lists; commands work without NumPy.
        return np.array([_value(entry) for entry in value])
    return float("nan") if value is None else value
