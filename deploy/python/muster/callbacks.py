"""Translates callbacks of Keras into those of a job file.

The runtime implements the callbacks. They run where the
model is trained, so a callback that is Python code cannot be translated.
"""

import glob
import os
import re

from muster.job_text import Word


def _path(path):
    return os.path.abspath(os.fspath(path))


def _mode(callback):
    return Word({"min": "MIN", "max": "MAX"}.get(callback.mode, "AUTO"))


def _early_stopping(callback):
    return {"early_stopping": {
        "monitor": callback.monitor,
        "min_delta": abs(callback.min_delta),
        "patience": callback.patience,
        "verbose": callback.verbose,
        "mode": _mode(callback),
        "baseline": callback.baseline,
        "restore_best_weights": callback.restore_best_weights,
        "start_from_epoch": callback.start_from_epoch,
    }}


def _reduce_lr_on_plateau(callback):
    return {"reduce_lr_on_plateau": {
        "monitor": callback.monitor,
        "factor": callback.factor,
        "patience": callback.patience,
        "verbose": callback.verbose,
        "mode": _mode(callback),
        "min_delta": abs(callback.min_delta),
        "cooldown": callback.cooldown,
        "min_lr": callback.min_lr,
    }}


def _csv_logger(callback):
    return {"csv_logger": {
        "filename": _path(callback.filename),
        "separator": callback.sep,
        "append": callback.append,
    }}


def _terminate_on_nan(callback):
    return {"terminate_on_nan": {"raise_error": getattr(callback, "raise_error", False)}}


def _swap_ema_weights(callback):
    return {"swap_ema_weights": {"swap_on_epoch": callback.swap_on_epoch}}


def _tensor_board(callback):
    if getattr(callback, "_start_batch", 0):
        raise ValueError("TensorBoard: profile_batch is not supported; expected 0")
    if callback.embeddings_freq:
        raise ValueError("TensorBoard: embeddings_freq is not supported; expected 0")
    return {"tensor_board": {
        "log_dir": _path(callback.log_dir),
        "histogram_freq": callback.histogram_freq,
        "write_graph": callback.write_graph,
        "write_images": callback.write_images,
        "write_steps_per_second": callback.write_steps_per_second,
        "update_freq": None if callback.update_freq == "epoch" else callback.update_freq,
    }}


def _model_checkpoint(callback):
    if not callback.filepath.endswith((".keras", ".weights.h5")):
        raise ValueError(f"ModelCheckpoint: filepath is {callback.filepath}; expected a name "
                         "that ends in .keras or .weights.h5")
    return {"model_checkpoint": {
        "filepath": _path(callback.filepath),
        "monitor": callback.monitor,
        "mode": _mode(callback),
        "verbose": callback.verbose,
        "save_best_only": callback.save_best_only,
        "save_weights_only": callback.save_weights_only,
        "save_freq": None if callback.save_freq == "epoch" else callback.save_freq,
        "initial_value_threshold": callback.best if callback.save_best_only else None,
    }}


def _backup_and_restore(callback):
    if callback.double_checkpoint:
        raise ValueError("BackupAndRestore: double_checkpoint is not supported; an incomplete "
                         "backup never replaces a complete one")
    return {"backup_and_restore": {
        "backup_dir": _path(callback.backup_dir),
        "save_freq": None if callback.save_freq == "epoch" else callback.save_freq,
        "delete_checkpoint": callback.delete_checkpoint,
    }}


_TRANSLATIONS = {
    "BackupAndRestore": _backup_and_restore,
    "CSVLogger": _csv_logger,
    "EarlyStopping": _early_stopping,
    "ModelCheckpoint": _model_checkpoint,
    "ReduceLROnPlateau": _reduce_lr_on_plateau,
    "SwapEMAWeights": _swap_ema_weights,
    "TensorBoard": _tensor_board,
    "TerminateOnNaN": _terminate_on_nan,
}


# Callbacks that fit() implements itself, or that do nothing.
_WITHOUT_FIELDS = ("Callback", "History", "ProgbarLogger")


def flatten(callbacks):
    """Returns a list of fit()'s `callbacks`: None, one, a CallbackList, or nested lists."""
    if callbacks is None:
        return []
    if isinstance(callbacks, dict):
        return [callback for name in sorted(callbacks) for callback in flatten(callbacks[name])]
    if isinstance(callbacks, (list, tuple)):
        return [callback for part in callbacks for callback in flatten(part)]
    if type(callbacks).__name__ == "CallbackList" and hasattr(callbacks, "callbacks"):
        return list(callbacks.callbacks)
    return [callbacks]


def is_history(callback):
    kind = type(callback)
    return kind.__module__.split(".")[0] == "keras" and kind.__name__ == "History"


def translate(callback):
    """Returns the JobCallback that does what `callback` does, as a dict.

    Returns None for callbacks that the cluster need not run, such as History.

    Raises:
      ValueError: the callback, or one of its options, has no equivalent.
    """
    kind = type(callback)
    is_of_keras = kind.__module__.split(".")[0] == "keras"
    if is_of_keras and kind.__name__ in _TRANSLATIONS:
        return _TRANSLATIONS[kind.__name__](callback)
    if is_of_keras and kind.__name__ in _WITHOUT_FIELDS:
        return None
    hint = ""
    if is_of_keras and kind.__name__ == "LearningRateScheduler":
        hint = ("; compile the model with a schedule of keras.optimizers.schedules, or use "
                "ReduceLROnPlateau")
    elif not is_of_keras:
        hint = ", because its Python code cannot run in the cluster"
    raise ValueError(f"callback {kind.__name__} is not supported{hint}; supported are "
                     f"{', '.join(sorted(_TRANSLATIONS))} of keras.callbacks")


def checkpoint_patterns(callbacks):
    """Returns patterns for glob of the files that ModelCheckpoint callbacks write."""
    return [re.sub(r"\{[^}]*\}", "*", glob.escape(os.path.abspath(callback.filepath)))
            for callback in callbacks if type(callback).__name__ == "ModelCheckpoint"]
