"""Callbacks of the user's own: they run in this process while the cluster trains.

The chief of the cluster sends an event for each hook, and waits for the answer. docs/formats.md
describes both.
"""

import json
import os
import time
import warnings

import keras
import numpy as np

from muster.errors import MusterError
from muster.lazy_weights import LazyWeights

_HOOKS = ("epoch_begin", "epoch_end", "train_batch_begin", "train_batch_end", "test_begin",
          "test_end", "test_batch_begin", "test_batch_end")
# What Callback calls in its own implementation of a hook.
_ALIASES = {"on_train_batch_begin": "on_batch_begin", "on_train_batch_end": "on_batch_end"}
_WITHOUT_NUMBER = ("train_begin", "test_begin", "test_end")
_PAUSE_SECONDS = (50e-6, 5e-3)  # Between two looks for an event: the first, and the longest.


def _overrides(callback, method):
    if method in vars(callback):
        return True
    base = getattr(keras.callbacks.Callback, method, None)
    return getattr(type(callback), method, None) is not base


def _wants(callback, hook):
    method = f"on_{hook}"
    return any(_overrides(callback, name) for name in (method, _ALIASES.get(method, method)))


def hooks_of(callbacks):
    """Returns the hooks that a list of callbacks implements, as the job file names them."""
    return [hook for hook in _HOOKS if any(_wants(callback, hook) for callback in callbacks)]


def _json_number(number):
    return number if np.isfinite(number) else str(number)


def _number(value):
    """Returns what JSON has for a value of logs, or None if that is not a number."""
    if value is None or isinstance(value, (bytes, str)):
        return None
    try:
        array = np.asarray(keras.ops.convert_to_numpy(value), dtype="float64")
    except (TypeError, ValueError):
        return None
    return _json_number(float(array.reshape(()))) if array.size == 1 else None


def _value(value):
    """Returns a value of logs in the form that Keras has it."""
    return np.array([float(one) for one in value]) if isinstance(value, list) else float(value)


class _Optimizer:
    """The numbers of an optimizer that each event has."""

    def __init__(self, optimizer):
        self._optimizer = getattr(optimizer, "inner_optimizer", optimizer)
        rate = getattr(self._optimizer, "_learning_rate", None)
        self._rate = rate if isinstance(rate, keras.Variable) else None  # Else a schedule.

    @property
    def variables(self):
        """Those that have the numbers."""
        return [self._optimizer.iterations] + ([] if self._rate is None else [self._rate])

    def set(self, event):
        self._optimizer.iterations.assign(event["iterations"])
        if self._rate is not None:
            self._rate.assign(float(event["learning_rate"]))

    def settings(self):
        """Returns what the cluster got when training began, and a callback must not change."""
        config = self._optimizer.get_config()
        config.pop("learning_rate", None)
        return {**config, "iterations": int(self._optimizer.iterations)}

    def rate(self):
        if self._rate is None:
            return None
        return float(keras.ops.convert_to_numpy(self._rate))


class _Exchange:
    """The events and answers of a group of callbacks, in a folder."""

    def __init__(self, folder):
        os.makedirs(folder, exist_ok=True)  # attach() finds the folder of fit().
        self.folder = folder
        self._event_path = os.path.join(folder, "event.json")
        self._answer_path = os.path.join(folder, "answer.json")
        self._event = None
        self._seen = None  # The identity of the file of the last event.

    def receive(self):
        """Returns the next event, or None if there is none yet.

        The file stays, so that another process can answer if this one ends: attach().
        """
        try:
            stat = os.stat(self._event_path)
            seen = stat.st_ino, stat.st_mtime_ns
            if seen == self._seen:
                return None
            with open(self._event_path, encoding="utf-8") as file:
                self._event = json.load(file)
        except FileNotFoundError:
            return None
        self._seen = seen
        return self._event

    def answer(self, fields):
        """Answers the last event."""
        text = json.dumps({"incarnation": self._event["incarnation"],
                           "sequence": self._event["sequence"], **fields})
        with open(self._answer_path + ".tmp", "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(self._answer_path + ".tmp", self._answer_path)


class _Group:
    """Callbacks that follow one another in the list of fit().

    Args:
      folder: for the events, created here.
      callbacks: a list.
      model: that the callbacks see.
      written: knows the files of the cluster; see SavedModel and WrittenModel.
    """

    def __init__(self, folder, callbacks, model, written):
        self.callbacks = callbacks
        self._exchange = _Exchange(folder)
        self._model = model
        self._written = written
        self._optimizer = _Optimizer(model.optimizer)
        self._weights = LazyWeights(model, self._fetch, self._optimizer.variables)
        self._weights_path = None
        self._has_begun = False
        self._is_running = lambda: True
        # TensorFlow's compiled functions read variables unseen.
        self._is_eager = keras.backend.backend() == "tensorflow" and not all(
            type(callback) is keras.callbacks.LearningRateScheduler for callback in callbacks)

    def serve(self, is_running, history):
        """Answers an event, if there is one. Returns whether there was.

        Args:
          is_running: returns False when the cluster has ended.
          history: of Keras; gets the logs of an epoch after the callbacks. Or None.

        Raises:
          any: a callback raised this.
        """
        event = self._exchange.receive()
        if event is None:
            return False
        self._is_running = is_running
        try:
            self._exchange.answer(self._call(event, history))
        except BaseException as error:
            self._exchange.answer({"error": f"a callback raised {type(error).__name__} in "
                                            f"on_{event['hook']}(): {error}"})
            raise
        finally:
            self._weights.restore()
        return True

    def _call(self, event, history):
        hook, logs = event["hook"], {name: _value(value) for name, value in event["logs"].items()}
        if hook == "train_begin" and self._has_begun:
            return {}  # The cluster was started again.
        self._weights_path = event.get("weights")  # Another process may have asked for them.
        self._optimizer.set(event)
        before = dict(logs), self._optimizer.rate(), self._settings()
        self._weights.expire()
        if self._is_eager and "batch" not in hook:
            self._weights.load()
        if not self._has_begun and hook != "train_begin":  # Training began in another process.
            for callback in self.callbacks:
                callback.on_train_begin({})
        self._has_begun = True
        arguments = [logs] if hook in _WITHOUT_NUMBER else [event["number"], logs]
        for callback in self.callbacks:
            getattr(callback, f"on_{hook}")(*arguments)
        if hook == "epoch_end" and history is not None:
            history.on_epoch_end(event["number"], logs)
        return self._changes(logs, *before)

    def _changes(self, logs, former_logs, former_rate, former_settings):
        for name, value in self._settings().items():
            if value != former_settings[name]:
                raise ValueError(f"a callback has changed `{name}`, which is not supported; train "
                                 "in two calls of fit()")
        assigned = {id(variable) for variable in self._weights.changed()}
        if any(id(variable) in assigned for variable in self._model.optimizer.variables):
            raise ValueError("a callback has changed the state of the optimizer, which is not "
                             "supported; it can change weights and the learning rate")
        answer = {}
        if self._model.stop_training:
            answer["stop_training"] = True
        if self._optimizer.rate() != former_rate:
            answer["learning_rate"] = _json_number(self._optimizer.rate())
        added = {name: value for name, value in logs.items()
                 if name not in former_logs or value is not former_logs[name]}
        numbers = {name: _number(value) for name, value in added.items()}
        for name, number in numbers.items():
            if number is None:
                warnings.warn(f"{name} in the logs is not a number; the cluster ignores it")
        answer["logs"] = {name: number for name, number in numbers.items() if number is not None}
        if assigned:
            path = os.path.join(self._exchange.folder, "assigned.weights.h5")
            self._written.save_weights(path, self._weights_path)
            answer["weights"] = path
        return answer

    def _settings(self):
        """Returns what a callback must not change, by name."""
        return {**self._optimizer.settings(), "optimizer": id(self._model.optimizer),
                "trainable": [bool(variable.trainable) for variable in self._model.variables]}

    def _fetch(self):
        """Loads the weights that the cluster has."""
        if self._weights_path is None:
            self._weights_path = self._ask_for_weights()
        self._written.load(self._weights_path)

    def _ask_for_weights(self):
        """Returns the path of a file with the weights."""
        self._exchange.answer({"needs_weights": True})
        pause = _PAUSE_SECONDS[0]
        while (event := self._exchange.receive()) is None:
            if not self._is_running():
                raise MusterError("the cluster ended while a callback read the weights")
            time.sleep(pause)
            pause = min(2 * pause, _PAUSE_SECONDS[1])
        if "weights" not in event:
            raise MusterError("the cluster started again while a callback read the weights")
        return event["weights"]


class OwnCallbacks:
    """All callbacks of a call of fit() that run in this process.

    Args:
      groups: (folder, callbacks) of neighbours in the list of fit(), at least one. They have
        the model.
      model, written: as for _Group.
      history: of Keras; gets the logs of each epoch.
      params: as for Callback.set_params().
    """

    def __init__(self, groups, model, written, history, params):
        self._model = model
        self._history = history
        self._groups = [_Group(folder, callbacks, model, written) for folder, callbacks in groups]
        model.stop_training = False
        history.set_params(params)
        history.set_model(model)
        history.on_train_begin()
        model.history = history
        for callback in self._callbacks():
            callback.set_params(params)

    def serve(self, is_running):
        """Runs the hooks for which the cluster waits. Returns whether there were any.

        Raises:
          any: a callback raised this.
        """
        *others, last = self._groups  # The history gets what all callbacks add to the logs.
        served = [group.serve(is_running, None) for group in others]
        return any([*served, last.serve(is_running, self._history)])

    def serve_until_end(self, is_running):
        """Runs the hooks for which the cluster waits, until is_running() returns False."""
        pause = _PAUSE_SECONDS[0]
        while is_running():
            if self.serve(is_running):
                pause = _PAUSE_SECONDS[0]
            time.sleep(pause)
            pause = min(1.5 * pause, _PAUSE_SECONDS[1])

    def end(self, logs):
        """Tells the callbacks that training has ended. The model has its weights.

        Args:
          logs: of the last epoch.
        """
        for callback in self._callbacks():
            callback.on_train_end(dict(logs))

    def _callbacks(self):
        return [callback for group in self._groups for callback in group.callbacks]
