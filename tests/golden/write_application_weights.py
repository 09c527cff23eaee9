"""Writes models of keras.applications for Muster to read.

    python write_application_weights.py FOLDER

For each model of cases/applications.py: NAME.weights.h5 with random weights, and
NAME.predictions, the float32 predictions for the drawn images.
"""

import os
import pathlib
import sys

os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""
os.environ["KERAS_BACKEND"] = "tensorflow"

import keras

from cases.applications import CLASSES, MODELS, drawn_images


def main():
    folder = pathlib.Path(sys.argv[1])
    for name, shape in MODELS.items():
        keras.utils.set_random_seed(1)
        model = getattr(keras.applications, name)(
            input_shape=shape, classes=CLASSES, weights=None, classifier_activation=None
        )
        model.save_weights(folder / f"{name}.weights.h5")
        model(drawn_images(shape), training=False).numpy().tofile(folder / f"{name}.predictions")


if __name__ == "__main__":
    main()
