"""Writes models of keras.applications for Muster to read.

    python write_application_weights.py FOLDER

Writes NAME.weights.h5, with the drawn weights, for each model in cases/applications.py.
"""

import os
import pathlib
import sys

os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""
os.environ["KERAS_BACKEND"] = "tensorflow"

from cases.applications import MODELS, drawn_model


def main():
    folder = pathlib.Path(sys.argv[1])
    for name in MODELS:
        drawn_model(name).save_weights(folder / f"{name}.weights.h5")


if __name__ == "__main__":
    main()
