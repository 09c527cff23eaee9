"""Writes models with programs for the cluster, and loads the results into them.

Exporting needs Keras on JAX. A model on another backend is rebuilt under JAX by another
process (export_main.py): from its config, its weights, and the classes and functions of the
user's own, which are pickled.
"""

import contextlib
import dataclasses
import importlib.util
import io
import json
import os
import pickle
import subprocess
import sys
import tempfile
import warnings
import zipfile

import keras
from muster.errors import MusterError
from muster.saved_model import check_config, complete_configs

# Longer than any model takes.
_EXPORT_SECONDS_MAX = 3600
_WEIGHTS = "model.weights.h5"


@dataclasses.dataclass
class Request:
    """What the export of a model depends on besides the model.

    Attributes:
      train_sizes, inference_sizes: the batch sizes that occur.
      inputs: for each input, (shape of an example, dtype); or empty.
      labels: for each output, (shape of an example, dtype) of its labels.
      example: for a model whose whole step is one program, what step_program.copy_of() takes;
        otherwise None.
      for_prediction: True if such a program computes predictions in place of the step.
      updates_all_rows: as for complete_configs().
    """

    train_sizes: list
    inference_sizes: list
    inputs: list
    labels: list
    example: object = None
    for_prediction: bool = False
    updates_all_rows: bool = False


def _check_packages():
    missing = [name for name in ("jax", "flatbuffers") if importlib.util.find_spec(name) is None]
    if missing:
        raise ValueError("the model has parts that Muster does not know, which JAX exports; "
                         f"install {' and '.join(missing)}: pip install 'muster[programs]'")


def _entries(copy):
    """Returns {path in the file of weights: variable or array} of a model."""
    from keras.src.saving import saving_lib

    class Recorder(saving_lib.H5IOStore):
        def __init__(self):  # pylint: disable=super-init-not-called
            self.entries = {}

        def __bool__(self):
            return True

        def make(self, path, metadata=None):
            self.entries[path] = {}
            return self.entries[path]

    recorder = Recorder()
    saving_lib._save_state(copy, recorder, None, "", set())
    return {f"{path}/vars/{key}".lstrip("/"): value
            for path, entry in recorder.entries.items() for key, value in entry.items()}


def _positions(model, copy):
    """Returns where the file of the copy has the variables of the model.

    {"variables": {path: index in model.variables},
     "optimizer": {path: index in model.optimizer.variables},
     "remark": what the user should know of the copy, or None}
    """
    indices = {id(variable): index for index, variable in enumerate(model.variables)}
    variables = {path: indices[id(value)] for path, value in _entries(copy).items()
                 if id(value) in indices}
    if not copy.compiled:
        return {"variables": variables, "optimizer": {}, "remark": None}
    sources = copy.optimizer_sources()
    positions = {id(variable): index for index, variable in enumerate(model.optimizer.variables)}
    optimizer = {f"optimizer/vars/{index}": positions[id(sources[id(variable)])]
                 for index, variable in enumerate(copy.optimizer.variables)
                 if id(variable) in sources}
    return {"variables": variables, "optimizer": optimizer,
            "remark": getattr(copy, "remark", None)}


@contextlib.contextmanager
def _copy_of(model, request):
    if request.for_prediction:
        from muster import step_program

        yield step_program.prediction_of(model, request.example[0], request.inference_sizes)
        return
    if request.example is not None:
        from muster import step_program

        with step_program.copy_of(model, request.example, request.train_sizes,
                                  request.inference_sizes) as copy:
            yield copy
        return
    from muster.program_copy import converted

    with converted(model, request.train_sizes, request.inference_sizes, request.inputs,
                   request.labels) as copy:
        yield copy


def write_here(model, path, request):
    """Exports in this process, whose Keras is on JAX. Returns the positions of the variables."""
    from muster.program_export import stable_names

    with (stable_names(model), _copy_of(model, request) as copy,
          complete_configs(copy, request.updates_all_rows)):
        copy.save(path)
        return _positions(model, copy)


def _custom_objects(model):
    """Returns the classes and functions of the user's own that the file of a model names."""
    from muster.programs import custom_classes

    things = custom_classes(model)
    return {**{thing.__name__: thing for thing in things},
            **{keras.saving.get_registered_name(thing): thing for thing in things}}


def _pickled(things):
    try:
        import cloudpickle
    except ImportError:
        for name, thing in things.items():
            if thing.__module__ == "__main__":
                raise ValueError(f"{name} is defined in the main program; install cloudpickle to "
                                 "pass it to the process that exports it, or set "
                                 "KERAS_BACKEND=jax") from None
        return pickle.dumps(things)
    return cloudpickle.dumps(things)


def _variables(model):
    return [*model.variables, *model.optimizer.variables]


def rebuilt(config, custom_objects, values, request):
    """Returns a model from its config and the values of its variables."""
    from muster.programs import build_call, build_step

    model = keras.saving.deserialize_keras_object(config, custom_objects=custom_objects,
                                                  safe_mode=False)
    if request.for_prediction:
        build_call(model, request.example[0])
    elif request.example is not None:
        build_step(model, request.example)
    if not model.optimizer.built:
        model.optimizer.build(model.trainable_variables)
    variables = _variables(model)
    if [tuple(one.shape) for one in variables] != [value.shape for value in values]:
        raise ValueError(f"it has {len(variables)} variables, {[one.path for one in variables]}; "
                         f"expected {len(values)} with the shapes "
                         f"{[value.shape for value in values]}")
    for variable, value in zip(variables, values):
        variable.assign(value)
    return model


def _check_configs(model):
    """Raises ValueError unless the configs of the user's own objects are complete."""
    from muster.programs import own_objects

    for what, thing in own_objects(model):
        check_config(thing, what)


def _write_in_child(model, path, request):
    _check_configs(model)
    with tempfile.TemporaryDirectory(prefix="muster-export-") as folder:
        try:
            model.save(os.path.join(folder, "model.keras"))
        except Exception as error:
            raise ValueError(
                f"the model cannot be saved, so that it can be exported under JAX: {error}. Give "
                "its classes a get_config(), or set KERAS_BACKEND=jax") from error
        values = [keras.ops.convert_to_numpy(variable) for variable in _variables(model)]
        with open(os.path.join(folder, "request.pickle"), "wb") as file:
            pickle.dump((path, sys.path, _pickled(_custom_objects(model)),
                         dataclasses.asdict(request), values), file)
        environment = {**os.environ, "KERAS_BACKEND": "jax", "JAX_PLATFORMS": "cpu",
                       "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        try:
            result = subprocess.run([sys.executable, "-m", "muster.export_main", folder],
                                    env=environment, stdin=subprocess.DEVNULL, check=False,
                                    capture_output=True, text=True, timeout=_EXPORT_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            raise MusterError("the process that exports the model has not ended within "
                              f"{_EXPORT_SECONDS_MAX} s") from None
        try:
            with open(os.path.join(folder, "result.json"), encoding="utf-8") as file:
                answer = json.load(file)
        except FileNotFoundError:
            raise MusterError("the process that exports the model has failed: "
                              f"{result.stderr[-2000:]}", result.returncode) from None
    if "error" in answer:
        raise ValueError(answer["error"])
    return answer


class WrittenModel:
    """A model that was written for the cluster."""

    def __init__(self, model, positions):
        self._model = model
        self._positions = positions

    def load(self, path):
        """Loads the weights and the state of the optimizer from a file of the cluster.

        Raises:
          ValueError: the file does not match the model.
          OSError: the file cannot be read.
        """
        import h5py

        if path.endswith(".h5"):
            with h5py.File(path, "r") as file:
                self._load(file)
            return
        with zipfile.ZipFile(path) as archive, \
                h5py.File(io.BytesIO(archive.read(_WEIGHTS)), "r") as file:
            self._load(file)

    def _load(self, file):
        self._assign(file, "variables", self._model.variables)
        if "optimizer" in file:
            self._assign(file, "optimizer", self._model.optimizer.variables)

    def save_weights(self, path, source):
        """Writes the weights of the model for the cluster.

        Args:
          path: ends in .weights.h5.
          source: a file of the cluster that was loaded, whose layout the new one has.
        """
        import h5py

        with zipfile.ZipFile(source) as archive, open(path, "wb") as file:
            file.write(archive.read(_WEIGHTS))
        variables = self._model.variables
        with h5py.File(path, "r+") as file:
            for name, index in self._positions["variables"].items():
                if name in file:
                    file[name][...] = keras.ops.convert_to_numpy(variables[index])

    def save_positions(self, path):
        """Writes where files of the cluster have the variables, for load_weights()."""
        with open(path, "w", encoding="utf-8") as file:
            json.dump(self._positions, file)

    @classmethod
    def of_file(cls, model, path):
        """Returns the model of a file of save_positions(), or None if there is no such file."""
        if not os.path.exists(path):
            return None
        with open(path, encoding="utf-8") as file:
            return cls(model, json.load(file))

    def rewrite(self, path):
        """Replaces a file of the cluster by one that Keras writes for the model.

        Changes the variables of the model. Errors as load(), and of saving.
        """
        self.load(path)
        suffix = ".weights.h5" if path.endswith(".weights.h5") else ".keras"
        temporary = f"{path}.tmp{suffix}"
        try:
            save = self._model.save if suffix == ".keras" else self._model.save_weights
            save(temporary)
            os.replace(temporary, path)
        finally:
            if os.path.exists(temporary):
                os.remove(temporary)

    def _assign(self, file, what, variables):
        adapted = {id(variable) for layer in self._model._flatten_layers()
                   if hasattr(layer, "adapt") for variable in layer.variables}
        for name, index in self._positions[what].items():
            variable = variables[index]
            if name not in file:
                if id(variable) in adapted:
                    continue  # Training does not change it, and the config has it.
                raise ValueError(f"the file has no {name}, which is {variable.path}")
            value = file[name][()]
            if tuple(value.shape) != tuple(variable.shape):
                raise ValueError(f"{name} has the shape {tuple(value.shape)}; expected "
                                 f"{tuple(variable.shape)} of {variable.path}")
            variable.assign(value)


def write(model, path, request):
    """Writes a compiled model with programs for what Muster does not know.

    Returns:
      WrittenModel.

    Raises:
      ValueError: a part cannot be exported; names it.
    """
    _check_packages()
    is_here = keras.backend.backend() == "jax"
    positions = (write_here if is_here else _write_in_child)(model, path, request)
    if positions["remark"]:
        warnings.warn(positions["remark"], stacklevel=4)
    return WrittenModel(model, positions)
