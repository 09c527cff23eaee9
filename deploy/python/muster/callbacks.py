"""Translates callbacks of Keras into those of a job file.

Those that the runtime implements run where the model is trained. Others are Python code, which
runs in the process that called fit(): own_callbacks.py.
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


def fill_early_stopping(callbacks, model, history):
    """Sets the attributes that EarlyStopping has after Keras' fit(), such as `stopped_epoch`.

    The callback sees the history again, without its effects on weights. One whose monitored
    value is not there for each epoch is left alone.
    """
    for callback in callbacks:
        if not _is_of_keras(callback) or type(callback).__name__ != "EarlyStopping":
            continue
        values = history.history.get(callback.monitor, ())
        if len(values) != len(history.epoch):
            continue
        settings = {name: getattr(callback, name) for name in ("restore_best_weights", "verbose")}
        callback.restore_best_weights, callback.verbose = False, 0
        callback.set_model(model)
        callback.on_train_begin()
        for epoch, value in zip(history.epoch, values):
            callback.on_epoch_end(epoch, {callback.monitor: value})
        vars(callback).update(settings)


def is_history(callback):
    kind = type(callback)
    return kind.__module__.split(".")[0] == "keras" and kind.__name__ == "History"


def _is_of_keras(callback):
    return type(callback).__module__.split(".")[0] == "keras"


def is_own(callback):
    """Returns whether a callback is Python code that runs in this process."""
    names = (*_TRANSLATIONS, *_WITHOUT_FIELDS)
    return not (_is_of_keras(callback) and type(callback).__name__ in names)


def own_groups(callbacks):
    """Returns the lists of own callbacks that follow one another, in order."""
    groups = []
    was_own = False
    for callback in callbacks:
        if is_own(callback):
            if not was_own:
                groups.append([])
            groups[-1].append(callback)
        was_own = is_own(callback)
    return groups


def check(callbacks):
    """Checks the callbacks of fit().

    Raises:
      ValueError: a callback has an option that is not supported, or is no callback.
    """
    for callback in callbacks:
        if not is_own(callback):
            translate(callback)
        elif not hasattr(callback, "set_model") or not hasattr(callback, "on_epoch_end"):
            raise ValueError(f"callbacks has {callback!r}; expected callbacks of Keras")


def translate(callback):
    """Returns the JobCallback that does what a callback of Keras does, as a dict.

    Returns None for callbacks that the cluster need not run, such as History.

    Raises:
      ValueError: an option has no equivalent.
    """
    translation = _TRANSLATIONS.get(type(callback).__name__)
    return translation(callback) if translation else None


def group_folder(index):
    """Returns the name of the folder for the events of a group of own callbacks."""
    return f"callbacks_{index}"


def job_callbacks(callbacks, batch_hook_interval):
    """Returns the callbacks of the job file, as dicts, in order.

    Args:
      callbacks: a list that check() accepts.
      batch_hook_interval: number of batches for which batch hooks of own callbacks are
        called once.
    """
    fields = []
    group_count = 0
    groups = own_groups(callbacks)
    was_own = False
    for callback in callbacks:
        if not is_own(callback):
            fields.append(translate(callback))
        elif not was_own:
            fields.append(_external(groups, group_count, batch_hook_interval))
            group_count += 1
        was_own = is_own(callback)
    return [one for one in fields if one is not None]


def _external(groups, index, batch_hook_interval):
    from muster.own_callbacks import hooks_of

    hooks = hooks_of(groups[index])
    if index == len(groups) - 1 and "epoch_end" not in hooks:
        hooks.append("epoch_end")  # For the history that callbacks see.
    return {"external": {
        "directory": "${job_dir}/" + group_folder(index),
        "hooks": hooks,
        "batch_interval": batch_hook_interval,
    }}


def checkpoint_patterns(callbacks):
    """Returns patterns for glob of the files that ModelCheckpoint callbacks write."""
    return [re.sub(r"\{[^}]*\}", "*", glob.escape(os.path.abspath(callback.filepath)))
            for callback in callbacks if type(callback).__name__ == "ModelCheckpoint"]
