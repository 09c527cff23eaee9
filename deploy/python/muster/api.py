"""fit() and write_job()."""

import dataclasses
import glob
import os
import shlex
import shutil
import tempfile
import time
import warnings

from muster.callbacks import (check, checkpoint_patterns, fill_early_stopping, flatten,
                              group_folder, is_history, is_own, own_groups)
from muster.clusters import Job, Local, following
from muster.commands import launch_name
from muster.errors import MusterError
from muster.executables import find_launch
from muster.history import read_history
from muster.job import (BACKENDS, LAST_EPOCH, Arguments, batch_sizes, integer, job_fields,
                        normalized, reader_count, step_count)
from muster.job_text import job_text
from muster.output_files import output_folders
from muster.running import run_launch

_FINAL_MODEL = "final_model.keras"
# Where files of the cluster have the variables of a model with programs.
POSITIONS = "positions.json"


def _write_programs(model, path, arguments, train, validation, example):
    from muster import program_files
    from muster.model_file import updates_all_rows

    train_sizes = batch_sizes(arguments, train.batch_size, train.example_count)
    inference_sizes = train_sizes
    if validation is not None:  # It has the batch size of training.
        inference_sizes = batch_sizes(arguments, train.batch_size, validation.example_count)
    return program_files.write(model, path, program_files.Request(
        train_sizes, inference_sizes, train.inputs, train.labels, example,
        updates_all_rows=updates_all_rows(arguments, model)))


def _programs_text(model, is_one_program):
    """Returns which parts of a model become programs."""
    from muster.programs import unknown_measures, unknown_optimizer, unknown_parts

    parts = [f"the step of {model.name}"] if is_one_program else [
        *unknown_parts(model), *unknown_measures(model)]
    return ", ".join([*parts, *unknown_optimizer(model)])


def _check_native(model):
    from muster.programs import is_whole

    text = _programs_text(model, is_whole(model))
    if text:
        raise ValueError(f"backend is \"native\", and Muster does not know {text}; expected "
                         "\"auto\" or \"program\"")


def _has_programs(model, is_one_program):
    return bool(_programs_text(model, is_one_program))


def _built(model, x, y, sample_weight, backend):
    """Creates all variables of a model for its data.

    Returns:
      (data.Schema, the types of an example if the step is one program, `x` for all batches).
    """
    from muster import data
    from muster.model_file import build_layers
    from muster.programs import build_step, is_whole

    if backend == "native":
        _check_native(model)
    if is_whole(model) or backend == "program":
        first, x = data.first_example(x, y, sample_weight)
        schema = data.StepSchema(first)
        build_step(model, schema.example_types)
        return schema, schema.example_types, x
    build_layers(model, x)
    return data.Schema.of(model), None, x


def _write(folder, model, x, y, sample_weight, validation_data, arguments, streams=False):
    """Writes model, data and job file.

    Args:
      streams: True if batches may be drawn while the cluster trains.

    Returns:
      (path of the job file, steps per epoch, data.BatchStream to write or None, an object
      with load() for the results, the folders that callbacks write).
    """
    from muster import data  # Imported here because it needs NumPy.
    from muster.model_file import SavedModel, check_model, save_model, updates_all_rows
    from muster.programs import is_whole

    check_model(model)
    is_one_program = is_whole(model) or arguments.backend == "program"
    if is_one_program and arguments.class_weight:
        if data.is_batches(x) or y is None or sample_weight is not None:
            raise ValueError("class_weight of a model that is one program is for arrays x and y "
                             "without sample_weight")
        sample_weight = data.class_weighted(y, arguments.class_weight,
                                            arguments.validation_split)
        arguments = dataclasses.replace(arguments, class_weight={})
    schema, example, x = _built(model, x, y, sample_weight, arguments.backend)
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, "model.keras")
    has_programs = _has_programs(model, is_one_program)
    if not has_programs:
        save_model(model, path, updates_all_rows(arguments, model))
    writer = data.DataWriter(folder, schema, arguments.data_bytes_max,
                             reader_count(arguments) if streams else None)
    if validation_data is not None:  # Takes precedence over validation_split, as in Keras.
        arguments = dataclasses.replace(arguments, validation_split=0.0)
    train, validation = data.write_train(writer, schema, arguments, x, y, sample_weight)
    if validation_data is not None:
        validation = data.write_validation(writer, schema, arguments, validation_data)
    if has_programs:  # They depend on the batch sizes.
        if arguments.verbose != 0:
            print(f"Programs: {_programs_text(model, is_one_program)}")
        written = _write_programs(model, path, arguments, train, validation, example)
        written.save_positions(os.path.join(folder, POSITIONS))
    else:
        written = SavedModel(model)
    job = os.path.join(folder, "model.job")
    fields = arguments.cluster.placed(job_fields(arguments, train, validation), folder)
    with open(job, "w", encoding="utf-8") as file:
        file.write(job_text(fields))
    return (job, step_count(arguments, train), writer.stream, written,
            output_folders(fields["callbacks"] or []))


def _new_folder(run_dir):
    folder = os.path.abspath(run_dir)
    if os.path.isdir(folder) and os.listdir(folder):
        raise ValueError(f"run_dir={folder} is not empty; each run needs a new folder")
    return folder


def _rewrite_checkpoints(written, callbacks, since):
    """Makes the files of ModelCheckpoint that are newer than `since` files of the user's model.

    A file that cannot be rewritten stays as it is, with a warning.
    """
    for pattern in checkpoint_patterns(callbacks):
        for path in glob.glob(pattern):
            if os.path.getmtime(path) < since:
                continue
            try:
                written.rewrite(path)
            except Exception as error:  # pylint: disable=broad-exception-caught
                warnings.warn(f"{path} has the layout of the cluster, and cannot be rewritten for "
                              f"the model: {error}", stacklevel=3)


def _load_last_epoch(written, folder):
    """Loads the weights of the last completed epoch into the model, if there was one.

    Raises:
      MusterError: the weights cannot be loaded; names the folder, which is kept.
    """
    path = os.path.join(folder, LAST_EPOCH)
    if not os.path.exists(path):
        return
    try:
        written.load(path)
    except Exception as error:
        raise MusterError(f"the weights of the last epoch cannot be loaded: {error}. They are "
                          f"kept in {path}") from error


def _load_result(written, folder):
    """Loads the weights and the optimizer's state of a successful run into the model.

    Returns (epochs, logs) of the history.

    Raises:
      MusterError: there is no result, or it cannot be loaded; names the folder, which
        is kept.
    """
    path = os.path.join(folder, _FINAL_MODEL)
    if not os.path.exists(path):
        raise MusterError(f"launch reported success, but did not write {path}")
    try:
        logs = read_history(folder)
        written.load(path)
    except Exception as error:
        raise MusterError(f"the model was trained, but its result cannot be loaded: {error}. "
                          f"{folder} keeps what was trained: {_FINAL_MODEL}, summary.json and "
                          "logs") from error
    return logs


def _fill(history, model, params, logs):
    history.set_params(params)
    history.set_model(model)
    history.on_train_begin()
    epochs, values = logs
    history.epoch = list(epochs)
    history.history = values
    model.history = history
    return history


def _history(callbacks):
    import keras

    return next((callback for callback in callbacks if is_history(callback)),
                None) or keras.callbacks.History()


def _set_model(callbacks, model):
    """Gives the model to callbacks that run in this process, which may change it."""
    for callback in callbacks:
        if is_own(callback):
            callback.set_model(model)


def _params(arguments, steps):
    return {"verbose": arguments.verbose, "epochs": arguments.epochs, "steps": steps}


@dataclasses.dataclass
class _Run:
    """What a run on a cluster is for.

    Attributes:
      model: gets the result.
      written: knows the files of the cluster; see SavedModel and WrittenModel.
      callbacks: of fit(), as a list.
      history: keras.callbacks.History to fill.
      params: as for keras.callbacks.Callback.set_params().
      since: the time before which files of ModelCheckpoint are those of other runs.
      stream: data.BatchStream to write, or None.
      outlives_python: True if the run goes on when this process has ended.
    """

    model: object
    written: object
    callbacks: list
    history: object
    params: dict
    since: float
    stream: object = None
    outlives_python: bool = False


def _own_callbacks(folder, run):
    """Returns the callbacks that run in this process, or None if there are none."""
    groups = own_groups(run.callbacks)
    if not groups:
        return None
    from muster.own_callbacks import OwnCallbacks

    folders = [os.path.join(folder, group_folder(index)) for index in range(len(groups))]
    return OwnCallbacks(list(zip(folders, groups)), run.model, run.written, run.history, run.params)


def _run(command, folder, run):
    """Runs a command of a cluster until its end, and loads the result.

    Raises:
      any: see fit(). The model has the weights of the last epoch that was completed.
    """
    own = _own_callbacks(folder, run)
    try:
        run_launch(command, folder, silent=run.params["verbose"] == 0,
                   feed=_feed(run.stream, own), outlives_python=run.outlives_python)
    except BaseException:
        _rewrite_checkpoints(run.written, run.callbacks, run.since)
        _load_last_epoch(run.written, folder)
        raise
    finally:
        if run.stream is not None:
            run.stream.remove()
    _rewrite_checkpoints(run.written, run.callbacks, run.since)
    _fill(run.history, run.model, run.params, _load_result(run.written, folder))
    fill_early_stopping(run.callbacks, run.model, run.history)
    if own is not None:
        own.end({name: values[-1] for name, values in run.history.history.items()})


def _feed(stream, own):
    """Returns what this thread does while the cluster trains, or None: see run_launch()."""
    if own is None:
        return stream and stream.write_others

    def feed(is_running):
        if stream is not None:
            stream.write_others(lambda: own.serve(is_running) or is_running())
        own.serve_until_end(is_running)

    return feed


def fit(model, x=None, y=None, batch_size=None, epochs=1, verbose="auto", callbacks=None,
        validation_split=0.0, validation_data=None, shuffle=True, class_weight=None,
        sample_weight=None, initial_epoch=0, steps_per_epoch=None, validation_steps=None,
        validation_batch_size=None, validation_freq=1, *, strategy=None, workers=0, ps=0,
        seed=None, run_dir=None, data_bytes_max=None, backend="auto", batch_hook_interval=1,
        cluster=None, embedding_updates="auto"):
    """Trains `model` on a cluster of processes.

    Equivalent to: keras.Model.fit. Arguments of both functions have the same meaning.
    Unsupported features are errors. Afterwards `model` has the trained weights and
    optimizer state.

    Args:
      model: a compiled model of Keras 3. Parts that Muster does not know, such as layers,
        losses and metrics of the user's own, are exported by JAX: docs/python.md.
      x, y: NumPy arrays or values that numpy.asarray() accepts; lists or dicts of them
        for several inputs or outputs; paths of .npy files; the path of a .csv file and
        the name of its label column. Or, without y: a tf.data.Dataset, a PyDataset, a
        loader or a generator of batches. With steps_per_epoch, batches are drawn in this
        thread while the cluster trains; without it, before training.
      verbose: 0 shows nothing. Other values show a progress bar on a terminal, a bar and plots
        of the metrics in a notebook, and elsewhere a line for each epoch.
      shuffle: True shuffles arrays again in each epoch. Batches are not shuffled.
      strategy: "parameter_server", "multi_worker_mirrored", "mirrored",
        "central_storage", "one_device", "tpu" or "default"; or {name: fields of the job file},
        such as {"mirrored": {"devices": ["cpu:0", "cpu:1"]}}. None: parameter servers
        if ps > 0, otherwise synchronous workers or one process.
      workers, ps: number of processes that train, and number of parameter servers.
      seed: seed of shuffling and dropout.
      run_dir: a new folder for model, data, logs, checkpoints and summary. None: a
        temporary folder, which is removed when training succeeds.
      data_bytes_max: maximum number of bytes of data in the folder. None: half of the
        free space on its disk.
      backend: "auto" exports what Muster does not know as programs; "native" refuses it;
        "program" exports the whole step as one program.
      cluster: where the processes run, such as muster.Slurm(workers=4), in place of `workers`
        and `ps`. None: on this machine.
      embedding_updates: which rows of an Embedding a step updates: "all_rows", as Keras does,
        or "rows_of_batch", those that occur in its batch. "auto": the rows of the batch with
        parameter servers, and where both compute the same; otherwise all rows.
      batch_hook_interval: batch hooks of callbacks that are Python code are called once for
        this number of batches.

    Returns:
      keras.callbacks.History.

    Raises:
      ValueError: an argument is invalid or not supported; names it.
      FileNotFoundError: Muster's executables are not installed.
      MusterError: training failed. The model has the weights of the last epoch that
        was completed.
      KeyboardInterrupt: the cluster has ended. The model has the weights of the last
        epoch that was completed.
      any: the iteration over `x`, or a callback, raised this. Otherwise as
        KeyboardInterrupt.
    """
    arguments = normalized(Arguments(
        batch_size, epochs, verbose, callbacks, validation_split, shuffle, class_weight,
        initial_epoch, steps_per_epoch, validation_steps, validation_batch_size,
        validation_freq, strategy, workers, ps, seed, data_bytes_max, backend,
        batch_hook_interval, cluster, embedding_updates))
    cluster = arguments.cluster
    cluster.check(run_dir)
    history = _history(arguments.callbacks)
    _set_model(arguments.callbacks, model)
    launch = find_launch()
    if arguments.epochs <= arguments.initial_epoch:
        return _fill(history, model, _params(arguments, arguments.steps_per_epoch), ([], {}))
    is_temporary = run_dir is None
    folder = tempfile.mkdtemp(prefix="muster-") if is_temporary else _new_folder(run_dir)
    # A folder with trained weights is kept, unless all of them were loaded or the user has
    # ended the run.
    remove = is_temporary
    since = time.time()
    try:
        job, steps, stream, written, outputs = _write(
            folder, model, x, y, sample_weight, validation_data, arguments,
            streams=cluster.can_stream)
        remove = False
        try:
            needs_folder = stream is not None or bool(own_groups(arguments.callbacks))
            _run(cluster.start(Job(launch, job, folder, is_temporary, needs_folder,
                                   tuple(outputs))), folder,
                 _Run(model, written, arguments.callbacks, history, _params(arguments, steps),
                      since, stream, cluster.outlives_python))
        except BaseException as error:
            remove = is_temporary and not isinstance(error, MusterError)
            raise
        remove = is_temporary
        return history
    finally:
        if remove:
            shutil.rmtree(folder, ignore_errors=True)


def write_job(model, x=None, y=None, *, folder, sample_weight=None, validation_data=None,
              **arguments):
    """Writes the job that fit() would run, to run it elsewhere. Prints the command.

    Args:
      folder: where the model, the data and the job file are written. It can be moved as
        a whole. .csv files are not copied into it.
      Others: as fit(), except run_dir.

    Returns:
      The path of the job file.

    Raises:
      ValueError: as fit().
    """
    known = normalized(Arguments(**arguments))
    known = dataclasses.replace(known, cluster=Local(known.workers, known.ps))
    own = [type(callback).__name__ for callback in known.callbacks if is_own(callback)]
    if own:
        raise ValueError(f"callbacks has {', '.join(own)}: Python code runs in the process that "
                         "calls fit(), and a written job has none")
    folder = os.path.abspath(folder)
    job, *_, outputs = _write(folder, model, x, y, sample_weight, validation_data, known)
    run = Job(launch_name(), job, folder, False, False, tuple(outputs))
    print(shlex.join(run.command(known.workers, known.ps)))
    return job


def export(model, path, x, y=None, sample_weight=None, *, batch_sizes=(32,), backend="auto",
           for_prediction=False):
    """Writes a compiled model for job files and for LoadModel() of C++.

    Parts that Muster does not know become programs, as for fit().

    Args:
      path: of the file to write; ends in .keras. load_weights() needs the file
        `path`.positions.json, which is written beside it if the model has programs.
      x, y, sample_weight: arrays, of which the types and shapes are used.
      batch_sizes: the numbers of examples for which there are programs. Replicas need the sizes
        of their parts of a batch.
      backend: as for fit().
      for_prediction: True for a model that only predicts, without compile settings. A model
        whose step would be one program computes no predictions otherwise.

    Raises:
      ValueError: as fit().
    """
    from muster import arrays, model_file, program_files
    from muster.programs import is_whole

    path = os.fspath(path)
    if not path.endswith(".keras"):
        raise ValueError(f"path is {path}; expected a name that ends in .keras")
    sizes = batch_sizes if isinstance(batch_sizes, (list, tuple, set)) else [batch_sizes]
    sizes = sorted({integer("batch_sizes", size, 1) for size in sizes}, reverse=True)
    if not sizes:
        raise ValueError("batch_sizes is empty; expected numbers of examples, such as [32]")
    if backend not in BACKENDS:
        raise ValueError(f"backend is {backend!r}; expected one of {', '.join(BACKENDS)}")
    model_file.check_model(model)
    if for_prediction and (is_whole(model) or backend == "program"):
        _export_prediction(model, path, x, sizes)
        return
    schema, example, _ = _built(model, x, y, sample_weight, backend)
    if not _has_programs(model, is_whole(model) or backend == "program"):
        model_file.save_model(model, path)
        return
    parts = schema.example(x, y, sample_weight)
    inputs, labels = map(arrays.example_types, parts[:2])
    program_files.write(model, path, program_files.Request(
        sizes, sizes, inputs, labels, example)).save_positions(path + "." + POSITIONS)


def _export_prediction(model, path, x, sizes):
    from muster import data, program_files

    if not model.built:
        raise ValueError(f"{model.name} is not built; call it, or train it, first")
    types = data.StepSchema((x, None, None)).example_types
    program_files.write(model, path, program_files.Request(
        sizes, sizes, [], [], types, for_prediction=True))


def load_weights(model, path, job=None):
    """Loads what a job of write_job(), or one with a model of export(), has trained.

    Args:
      model: the model for which the job was written, or one that was made in the same way.
        If it has layers that its first call builds, it must have been called.
      path: the file of the cluster: final_model.keras, or one of ModelCheckpoint. Or a file of
        safetensors, such as one of save_weights(), whose tensors have the paths of the model's
        variables.
      job: the job file of write_job(), or the file of export(). None for a file of safetensors.

    Raises:
      ValueError: the file does not match the model.
      OSError: a file cannot be read.
    """
    if os.fspath(path).endswith(".safetensors"):
        from muster.weights import load_model_weights

        load_model_weights(model, path)
        return
    if job is None:
        raise ValueError(f"{path} needs job, the job file of write_job() or the file of export(); "
                         "only files that end in .safetensors do not")
    job = os.path.abspath(job)
    positions = f"{job}.{POSITIONS}" if job.endswith(".keras") else \
        os.path.join(os.path.dirname(job), POSITIONS)
    _written_model(model, positions).load(os.fspath(path))


def _written_model(model, positions):
    """Returns what knows the files of a job.

    Args:
      positions: the file of WrittenModel.save_positions(), which need not exist.

    Raises:
      ValueError: the model is not compiled.
    """
    from muster import model_file, program_files

    model_file.check_model(model)
    if not model.optimizer.built:
        model.optimizer.build(model.trainable_variables)
    return program_files.WrittenModel.of_file(model, positions) or model_file.SavedModel(model)


def attach(model, run_dir, *, callbacks=None, verbose="auto"):
    """Waits for a run that goes on without the process that began it, and loads its result.

    For runs of fit() with a cluster such as muster.Slurm: after a notebook or a connection was
    lost, or from another machine that shares the folder. Batches that a generator yields
    cannot be drawn by another process.

    Args:
      model: that was passed to fit(), or one that was made in the same way.
      run_dir: of fit().
      callbacks: those of fit() that are Python code, in the same order, made anew.
      verbose: as for fit().

    Returns, raises: as fit().
    """
    folder = os.path.abspath(run_dir)
    command = following(folder)
    callbacks = flatten(callbacks)
    check(callbacks)
    history = _history(callbacks)
    _set_model(callbacks, model)
    _run(command, folder, _Run(model, _written_model(model, os.path.join(folder, POSITIONS)),
                               callbacks, history,
                               {"verbose": verbose, "epochs": None, "steps": None},
                               os.path.getmtime(os.path.join(folder, "model.job")),
                               outlives_python=True))
    return history
