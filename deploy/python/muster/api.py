"""fit() and write_job()."""

import os
import shlex
import shutil
import tempfile

from muster.errors import MusterError
from muster.executables import find_launch
from muster.history import read_history
from muster.job import LAST_EPOCH, Arguments, batch_size_of, check, job_fields, step_count
from muster.job_text import job_text
from muster.running import run_launch

_FINAL_MODEL = "final_model.keras"


def _prepare_model(model, x):
    """Builds what Keras' fit() would build."""
    kind = type(model)
    if kind.__module__.split(".")[0] != "keras":
        raise ValueError(f"the model is a {kind.__name__}, whose Python code cannot run in the "
                         "cluster; expected a Sequential or functional model of Keras")
    if not getattr(model, "compiled", False):
        raise ValueError("the model is not compiled; call model.compile() first")
    if not model.built:
        if not hasattr(x, "shape"):
            raise ValueError("the model is not built; begin it with keras.Input, or call "
                             "model.build()")
        model.build((None,) + tuple(x.shape[1:]))
    if not model.optimizer.built:
        model.optimizer.build(model.trainable_variables)


def _validation_of(validation_data):
    """Returns (x, y, sample_weight) of fit()'s validation_data."""
    if isinstance(validation_data, (tuple, list)):
        if len(validation_data) not in (2, 3):
            raise ValueError(f"validation_data has {len(validation_data)} parts; expected (x, y) "
                             "or (x, y, sample_weight)")
        return tuple(validation_data) + (None,) * (3 - len(validation_data))
    return validation_data, None, None


def _write(folder, model, x, y, sample_weight, validation_data, arguments):
    """Writes model, data and job file. Returns (path of the job file, steps of an epoch)."""
    from muster.data import Schema, write_data  # Needs NumPy; the rest does not.

    check(arguments)
    _prepare_model(model, x)
    schema = Schema.of(model)
    os.makedirs(folder, exist_ok=True)
    train = write_data(folder, "train", schema, x, y, sample_weight)
    validation = None
    if validation_data is not None:
        validation = write_data(folder, "validation", schema, *_validation_of(validation_data))
    text = job_text(job_fields(arguments, train, validation))
    model.save(os.path.join(folder, "model.keras"))
    job = os.path.join(folder, "model.job")
    with open(job, "w", encoding="utf-8") as file:
        file.write(text)
    return job, step_count(arguments, train, batch_size_of(arguments, train, validation))


def _new_folder(run_dir):
    folder = os.path.abspath(run_dir)
    if os.path.isdir(folder) and os.listdir(folder):
        raise ValueError(f"run_dir={folder} is not empty; each run needs a new folder")
    return folder


def _command(launch, job, arguments):
    return [launch, f"--job={job}", f"--workers={arguments.workers}", f"--ps={arguments.ps}"]


def _load_last_epoch(model, folder):
    """Gives `model` what the last completed epoch left, if there was one."""
    path = os.path.join(folder, LAST_EPOCH)
    if os.path.exists(path):
        model.load_weights(path)


def _load_result(model, folder):
    """Gives `model` the weights and the optimizer's state of a run that succeeded."""
    path = os.path.join(folder, _FINAL_MODEL)
    if not os.path.exists(path):
        raise MusterError(f"launch reported success, but did not write {path}")
    model.load_weights(path)


def _fill(history, model, arguments, steps, logs):
    history.set_params({"verbose": arguments.verbose, "epochs": arguments.epochs, "steps": steps})
    history.set_model(model)
    history.on_train_begin()
    epochs, values = logs
    history.epoch = list(epochs)
    history.history = values
    model.history = history
    return history


def fit(model, x=None, y=None, batch_size=None, epochs=1, verbose="auto", callbacks=None,
        validation_split=0.0, validation_data=None, shuffle=True, class_weight=None,
        sample_weight=None, initial_epoch=0, steps_per_epoch=None, validation_steps=None,
        validation_batch_size=None, validation_freq=1, *, strategy=None, workers=0, ps=0,
        seed=None, run_dir=None):
    """Trains `model` on a cluster of processes on this machine.

    Equivalent to: keras.Model.fit. Arguments that both have mean the same; what is not
    supported is an error. `model` has the trained weights and optimizer state afterwards.

    Args:
      model: a compiled Sequential or functional model of Keras 3.
      x, y: NumPy arrays or what numpy.asarray() takes; lists or dicts of them for
        several inputs or outputs; paths of .npy files; the path of a .csv file and the
        name of its label column. Or, without y: a tf.data.Dataset, a PyDataset or an
        iterable of batches, which is read to its end before training.
      verbose: 0 shows nothing; other values, a bar on a terminal and a line for each
        epoch elsewhere.
      shuffle: True shuffles arrays anew in each epoch. Batches stay as they are.
      strategy: "parameter_server", "multi_worker_mirrored", "mirrored",
        "central_storage", "one_device" or "default"; or {name: fields of the job file},
        such as {"mirrored": {"devices": ["cpu:0", "cpu:1"]}}. None: parameter servers
        if there are some, otherwise synchronous workers or one process.
      workers, ps: how many processes train, and how many hold the variables.
      seed: of shuffling and dropout.
      run_dir: a new folder for model, data, logs, checkpoints and summary. None: a
        temporary folder, which is removed when training succeeds.

    Returns:
      keras.callbacks.History.

    Raises:
      ValueError: an argument is invalid or not supported; names it.
      FileNotFoundError: Muster's executables are not installed.
      MusterError: training failed. The model has the weights of the last epoch that
        was completed.
      KeyboardInterrupt: the cluster has ended, and the model has these weights.
    """
    import keras

    arguments = Arguments(
        batch_size, epochs, verbose, callbacks, validation_split, shuffle, class_weight,
        initial_epoch, steps_per_epoch, validation_steps, validation_batch_size,
        validation_freq, strategy, workers, ps, seed)
    launch = find_launch()
    is_temporary = run_dir is None
    folder = tempfile.mkdtemp(prefix="muster-") if is_temporary else _new_folder(run_dir)
    remove = is_temporary
    try:
        job, steps = _write(folder, model, x, y, sample_weight, validation_data, arguments)
        try:
            run_launch(_command(launch, job, arguments) + [f"--run_dir={folder}"], folder,
                       silent=verbose == 0)
            _load_result(model, folder)
        except (KeyboardInterrupt, MusterError) as error:
            # The logs say more than the error.
            remove = is_temporary and isinstance(error, KeyboardInterrupt)
            _load_last_epoch(model, folder)
            raise
        return _fill(keras.callbacks.History(), model, arguments, steps, read_history(folder))
    finally:
        if remove:
            shutil.rmtree(folder, ignore_errors=True)


def write_job(model, x=None, y=None, *, folder, sample_weight=None, validation_data=None,
              **arguments):
    """Writes what fit() would train, to be run elsewhere. Prints the command.

    Args:
      folder: gets the model, the data and the job file. It can be moved as a whole;
        data given as .csv files stays where it is.
      Others: as fit(). Not: run_dir.

    Returns:
      The path of the job file.

    Raises:
      ValueError: as fit().
    """
    known = Arguments(**arguments)
    job, _ = _write(os.path.abspath(folder), model, x, y, sample_weight, validation_data, known)
    print(shlex.join(_command("launch", job, known)))
    return job
