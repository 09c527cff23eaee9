"""The history of a run, which the runtime writes to summary.json."""

import json
import os

SUMMARY = "summary.json"


def read_history(run_dir):
    """Returns (epochs, logs) of the run in `run_dir`.

    `epochs` are numbered from 0; `logs` maps each name, such as "val_loss", to its
    values. Values that are not finite are NaN. A metric whose value is a list, such as
    F1Score, has an array, as in Keras.

    Raises:
      FileNotFoundError: the run has not ended.
    """
    with open(os.path.join(run_dir, SUMMARY), encoding="utf-8") as file:
        logs = dict(json.load(file)["history"])
    epochs = logs.pop("epoch")
    return epochs, {name: [_value(value) for value in values] for name, values in logs.items()}


def _value(value):
    if isinstance(value, list):
        import numpy as np  # Imported here, because commands work without NumPy.
        return np.array([_value(entry) for entry in value])
    return float("nan") if value is None else value
