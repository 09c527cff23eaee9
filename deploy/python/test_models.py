"""Models and data for tests that need Keras. Ends the test if Keras is not installed."""

import contextlib
import glob
import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""

try:
    import keras
    import numpy as np
except ModuleNotFoundError as error:
    print(f"{error}: the test is skipped. Set MUSTER_KERAS_PYTHON to a Python with Keras.")
    raise SystemExit(0)

TOLERANCE = 1e-4
ROWS = 200
FEATURES = 8


def data(seed=0):
    generator = np.random.default_rng(seed)
    x = generator.normal(size=(ROWS, FEATURES)).astype("float32")
    return x, (np.abs(x).sum(1) * 2).astype("int64") % 3


def binary(optimizer="sgd"):
    keras.utils.set_random_seed(2)
    model = keras.Sequential([keras.Input((FEATURES,)), keras.layers.Dense(8, activation="tanh"),
                              keras.layers.Dense(1, activation="sigmoid")])
    model.compile(optimizer, "binary_crossentropy", metrics=["accuracy"])
    return model


def classifier(optimizer="adam"):
    keras.utils.set_random_seed(3)
    model = keras.Sequential([keras.Input((FEATURES,)), keras.layers.Dense(8, activation="tanh"),
                              keras.layers.Dense(3, activation="softmax")])
    model.compile(optimizer, "sparse_categorical_crossentropy", metrics=["accuracy"])
    return model


class AtEpoch(keras.callbacks.Callback):
    """Does something at the end of an epoch, once.

    Attributes:
      epochs: the numbers of all epochs that have ended.
    """

    def __init__(self, epoch, action):
        super().__init__()
        self.epoch, self.action = epoch, action

    def on_train_begin(self, logs=None):
        self.epochs = []

    def on_epoch_end(self, epoch, logs=None):
        self.epochs.append(epoch)
        if epoch == self.epoch:
            self.epoch = None
            self.action()


def tasks_of(run_dir):
    """Returns the processes whose command line contains the folder."""
    found = []
    for path in glob.glob("/proc/[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            with open(path, "rb") as file:
                if os.fsencode(run_dir) in file.read():
                    found.append(path)
    return found
