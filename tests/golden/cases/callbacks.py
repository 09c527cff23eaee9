"""callbacks.json: when Keras stops training, and which learning rates it uses.

A case passes one value of val_loss (or val_accuracy) per epoch to a callback. Inputs:
`values`. Outputs: `epochs`, the number of epochs that ran; `learning_rates`, after each
epoch; `weights`, the final weight, which is n during epoch n (from 1); `messages`, the
output with verbose=1. `config` has the class and its arguments.
"""

import contextlib
import io
import re

import keras
import numpy as np

from cases import golden_format


class Script(keras.callbacks.Callback):
    """Sets the weight and reports the monitored value."""

    def __init__(self, name, values):
        super().__init__()
        self.name, self.values = name, values
        self.learning_rates = []

    def on_epoch_begin(self, epoch, logs=None):
        self.model.set_weights([np.array([[epoch + 1.0]], np.float32)])

    def on_epoch_end(self, epoch, logs=None):
        logs[self.name] = self.values[epoch]


class Rates(keras.callbacks.Callback):
    def __init__(self):
        super().__init__()
        self.rates = []

    def on_epoch_end(self, epoch, logs=None):
        self.rates.append(float(np.float32(self.model.optimizer.learning_rate)))


def _case(name, callback_class, config, values):
    keras.utils.set_random_seed(1)
    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1, use_bias=False)])
    # With a gradient of zero, the weight does not change.
    model.compile(keras.optimizers.SGD(0.5), loss="mse", metrics=["accuracy"])
    monitor = config.get("monitor", "val_loss")
    rates = Rates()
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        history = model.fit(
            np.zeros((1, 1)), np.zeros((1, 1)), epochs=len(values), verbose=0,
            callbacks=[Script(monitor, values), callback_class(**config, verbose=1), rates])
    messages = [re.sub(r"\x1b\[[0-9;]*m", "", line)
                for line in printed.getvalue().splitlines() if line]
    return golden_format.case(
        name, {"class_name": callback_class.__name__, **config},
        {"values": values},
        {"epochs": len(history.epoch),
         "learning_rates": rates.rates,
         "weights": float(model.get_weights()[0][0, 0]),
         "messages": messages})


def cases():
    stop = keras.callbacks.EarlyStopping
    reduce = keras.callbacks.ReduceLROnPlateau
    falling = [5.0, 4.0, 3.0, 3.5, 3.2, 3.1, 2.0, 1.0]
    rising = [0.5, 0.6, 0.7, 0.65, 0.7, 0.68, 0.9, 0.95]
    slow = [1.0, 0.95, 0.9, 0.89, 0.885, 0.884, 0.5, 0.6, 0.7, 0.8, 0.9, 0.9]
    return [
        _case("stop_without_patience", stop, {}, falling),
        _case("stop_after_patience", stop, {"patience": 3}, falling),
        _case("stop_patience_is_enough", stop, {"patience": 4}, falling),
        _case("stop_restores_best", stop,
              {"patience": 2, "restore_best_weights": True}, falling),
        _case("stop_restores_best_at_the_end", stop,
              {"patience": 9, "restore_best_weights": True}, falling[:6]),
        _case("stop_min_delta", stop, {"patience": 2, "min_delta": 0.06}, slow),
        _case("stop_baseline", stop, {"patience": 3, "baseline": 0.1}, falling),
        _case("stop_baseline_restores", stop,
              {"patience": 3, "baseline": 0.1, "restore_best_weights": True}, falling),
        _case("stop_baseline_reached", stop, {"patience": 3, "baseline": 3.3}, falling),
        _case("stop_start_from_epoch", stop, {"patience": 1, "start_from_epoch": 4}, falling),
        _case("stop_max_by_name", stop, {"monitor": "val_accuracy", "patience": 2}, rising),
        _case("stop_min_by_mode", stop,
              {"monitor": "val_accuracy", "patience": 2, "mode": "min"}, rising),
        _case("stop_first_epoch_never", stop, {"patience": 0}, [1.0, 1.0, 1.0]),
        _case("reduce_after_patience", reduce, {"patience": 2, "factor": 0.5}, slow),
        _case("reduce_min_delta", reduce,
              {"patience": 2, "factor": 0.5, "min_delta": 0.06}, slow),
        _case("reduce_cooldown", reduce,
              {"patience": 1, "factor": 0.5, "min_delta": 0.2, "cooldown": 2}, slow),
        _case("reduce_min_lr", reduce,
              {"patience": 1, "factor": 0.1, "min_delta": 0.2, "min_lr": 0.02}, slow),
        _case("reduce_max_by_name", reduce,
              {"monitor": "val_accuracy", "patience": 1, "factor": 0.5}, rising),
    ]
