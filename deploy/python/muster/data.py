"""The data of fit(), as sources of a job file."""

import itertools
import math
import os

import numpy as np

from muster import arrays
from muster.batches import batches_of, is_batches
from muster.job import Data
from muster.stream import BatchStream
from muster.structure import Structure, positions

_FOLDER = "data"


def _is_path(value, suffix):
    return isinstance(value, (str, os.PathLike)) and os.fspath(value).endswith(suffix)


def _with_rank(array, shape):
    """Adds or removes a last extent of 1, as Keras' models do with their inputs."""
    if shape is None or array.ndim == len(shape):
        return array
    if array.ndim == len(shape) + 1 and array.shape[-1] == 1:
        return array[..., 0]
    if array.ndim == len(shape) - 1 and shape[-1] == 1:
        return array[..., np.newaxis]
    return array


class Schema:
    """The inputs and outputs of a model.

    Args:
      inputs, outputs: their Structures.
      input_dtypes: dtypes of the inputs.
      input_shapes: shapes of the inputs, with the batch dimension; or None.

    Attributes:
      needs_labels: True if each example must have labels.
    """

    needs_labels = True

    def __init__(self, inputs, input_dtypes, outputs, input_shapes=None):
        self.inputs = inputs
        self.outputs = outputs
        self._input_dtypes = input_dtypes
        self._input_shapes = input_shapes or [None] * len(input_dtypes)

    @classmethod
    def of(cls, model):
        """Returns the schema of a built model of Keras."""
        inputs = [tensor.name for tensor in model.inputs]
        dtypes = [tensor.dtype for tensor in model.inputs]
        shapes = [tuple(tensor.shape) for tensor in model.inputs]
        if not hasattr(model, "output_names"):  # Sequential: one output, and no names.
            return cls(Structure(inputs), dtypes, Structure(["output"]), shapes)
        return cls(Structure(inputs, positions(model.input, model.inputs)), dtypes,
                   Structure(list(model.output_names), positions(model.output, model.outputs)),
                   shapes)

    def dtypes(self):
        """Returns the dtypes of the components of an example.

        None stands for the choice of arrays.stored_dtype().
        """
        output_count = len(self.outputs.names)
        return self._input_dtypes + [None] * output_count + ["float32"] * output_count

    def example(self, x, y, sample_weight=None):
        """Returns (inputs, labels, sample weights), lists of arrays."""
        inputs = [_with_rank(array, shape) for array, shape in
                  zip(_components(x, self.inputs, "x"), self._input_shapes)]
        labels = _components(y, self.outputs, "y")
        if sample_weight is None:
            return inputs, labels, []
        is_for_each = isinstance(sample_weight, dict) or (
            isinstance(sample_weight, (list, tuple)) and len(self.outputs.names) > 1)
        structure = self.outputs if is_for_each else Structure(["all"])
        weights = _components(sample_weight, structure, "sample_weight")
        return inputs, labels, [array[..., 0] if array.ndim == 2 and array.shape[1] == 1 else array
                                for array in weights]

    def component_names(self, counts):
        """Returns the names of the components of an example in error messages."""
        def names(what, structure, count):
            if count == 1:
                return [what]
            return [f"{what}[{name!r}]" for name in structure.names]

        inputs, labels, weights = counts
        return (names("x", self.inputs, inputs) + names("y", self.outputs, labels)
                + (names("sample_weight", self.outputs, weights) if weights else []))


class StepSchema(Schema):
    """The data of a model whose whole step is one program (step_program.py).

    Features, labels and sample weights of an example are inputs; the labels of the only output
    are not used.

    Args:
      example: (x, y, sample weight) of an example or a batch: structures of arrays.
    """

    needs_labels = False

    def __init__(self, example):
        leaves = [leaf for part in example for leaf in _leaf_arrays(part)]
        self.example_types = tuple(_types_of(part) for part in example)
        super().__init__(Structure([f"input_{index}" for index in range(len(leaves))]),
                         [arrays.model_dtype(leaf.dtype) for leaf in leaves],
                         Structure(["loss"]))

    def example(self, x, y, sample_weight=None):
        if sample_weight is None and self.example_types[2] is not None:
            sample_weight = np.ones(len(_leaf_arrays(x)[0]), "float32")
        leaves = [leaf for part in (x, y, sample_weight) for leaf in _leaf_arrays(part)]
        if len(leaves) != len(self.inputs.names):
            raise ValueError(f"x, y and sample_weight have {len(leaves)} arrays; expected "
                             f"{len(self.inputs.names)} as in the first batch")
        return leaves, [np.zeros(len(leaves[0]), "float32")], []


def _leaf_arrays(structure):
    """Returns the arrays in a structure, in the order of Keras."""
    if structure is None:
        return []
    if isinstance(structure, dict):
        return [leaf for key in sorted(structure) for leaf in _leaf_arrays(structure[key])]
    if isinstance(structure, (list, tuple)) and any(hasattr(one, "shape") for one in structure):
        return [leaf for one in structure for leaf in _leaf_arrays(one)]
    return [arrays.as_array(structure, "x")]


def _types_of(structure):
    """Returns the structure with (shape, dtype) of an example for each array."""
    if structure is None:
        return None
    if isinstance(structure, dict):
        return {key: _types_of(value) for key, value in structure.items()}
    if isinstance(structure, (list, tuple)) and any(hasattr(one, "shape") for one in structure):
        return [_types_of(one) for one in structure]
    array = arrays.as_array(structure, "x")
    return (tuple(array.shape[1:]), str(arrays.model_dtype(array.dtype)))


def class_weighted(y, class_weight, validation_split):
    """Returns the weights of examples for the weights of their classes, as Keras does.

    Args:
      validation_split: the share of the examples, the last ones, that validate. Their weight is 1.
    """
    labels = np.asarray(y)
    if labels.ndim > 1:
        labels = labels.argmax(axis=-1) if labels.shape[-1] > 1 else labels[..., 0]
    weights = np.vectorize(lambda label: class_weight.get(int(label), 1.0),
                           otypes=["float32"])(labels)
    if validation_split:
        weights[split_index(len(weights), validation_split):] = 1
    return weights


def first_example(x, y, sample_weight):
    """Returns (x, y, sample weight) of data, or of its first batch, and `x` for all batches."""
    if not is_batches(x):
        return (x, y, sample_weight), x
    batches = iter(batches_of(x, "x", 1, needs_labels=False))
    first = next(batches, None)
    if first is None:
        raise ValueError("the train data has no examples")
    first = (*first, None, None)[:3]
    if iter(x) is x:  # A generator has lost its first batch.
        x = itertools.chain([first], x)
    return first, x


def _components(value, structure, what):
    """Returns the arrays of x, y or sample_weight in the order of the structure's names."""
    parts = structure.arrange(value, what)
    return [arrays.as_array(part, what if len(parts) == 1 else f"{what}[{name!r}]")
            for part, name in zip(parts, structure.names)]


def _npy_source(files, counts):
    """Returns the npy source of a job for the inputs, labels and weights in `files`."""
    inputs, labels, weights = counts
    paths = ["${job_dir}/" + f"{_FOLDER}/{os.path.basename(files.path(index))}"
             for index in range(inputs + labels + weights)]
    return {"npy": {
        "features": paths[0],
        "more_features": [{"path": path} for path in paths[1:inputs]],
        "labels": paths[inputs],
        "more_labels": [{"path": path} for path in paths[inputs + 1:inputs + labels]],
        "sample_weights": [{"path": path} for path in paths[inputs + labels:]],
    }}


class DataWriter:
    """Writes the data of one job.

    Args:
      folder: the folder of the job file; must exist.
      schema: the Schema of the model.
      bytes_max: as for arrays.Budget.
      reader_count: number of processes that train while batches are drawn. None: all
        data is written before training.

    Attributes:
      stream: the BatchStream to write during training, or None.
    """

    def __init__(self, folder, schema, bytes_max=None, reader_count=None):
        self._folder = os.path.join(folder, _FOLDER)
        self._schema = schema
        self._budget = arrays.Budget(folder, bytes_max)
        self._reader_count = reader_count
        self.stream = None

    @property
    def can_stream(self):
        return self._reader_count is not None

    def open_stream(self, x, what, count):
        """Opens a stream of `count` batches of `x`. Writes the first one. Returns Data."""
        self.stream = BatchStream(os.path.join(self._folder, "stream"), self._schema,
                                  batches_of(x, what, count, self._schema.needs_labels), count,
                                  self._reader_count, self._budget)
        self.stream.write_first()
        inputs, labels, weights = self.stream.counts
        source = {"batch_stream": {
            "directory": "${job_dir}/" + f"{_FOLDER}/stream", "batch_count": count,
            "feature_count": inputs, "label_count": labels,
            "sample_weight_count": weights or None}}
        return Data(source, self.stream.batch_size * count, self.stream.batch_size,
                    inputs=self.stream.inputs, labels=self.stream.labels)

    def _write(self, prefix, examples):
        """Writes lists of arrays. Returns (Data, the number of rows of each)."""
        counts = None
        sizes = []
        with arrays.ArrayFiles(self._folder, prefix, self._schema.dtypes(),
                               self._budget) as files:
            for parts in examples:
                counts = tuple(len(part) for part in parts)
                inputs, labels = map(arrays.example_types, parts[:2])
                flat = [array for part in parts for array in part]
                files.append(flat, self._schema.component_names(counts))
                sizes.append(len(flat[0]))
        if files.example_count == 0:
            raise ValueError(f"the {prefix} data has no examples")
        data = Data(_npy_source(files, counts), files.example_count, inputs=inputs,
                    labels=labels)
        return data, sizes

    def write_batches(self, prefix, x, what, count=None):
        """Writes the batches that `x` yields, at most `count`. Returns (Data, their sizes)."""
        batches = batches_of(x, what, count, self._schema.needs_labels)
        return self._write(prefix, (self._schema.example(*batch) for batch in batches))

    def write_arrays(self, prefix, parts, begin=0, end=None):
        """Writes rows of arrays that Schema.example() returned. Returns Data."""
        return self._write(prefix, [[[array[begin:end] for array in part] for part in parts]])[0]


def _csv(x, y, sample_weight, what):
    if not isinstance(y, str):
        raise ValueError(f"{what} is the file {x}; expected the name of its label column as y")
    if sample_weight is not None:
        raise ValueError("sample_weight is not supported for CSV files; pass arrays")
    with open(x, "rb") as file:
        line_count = sum(1 for line in file if line.strip())
    return Data({"csv": {"path": os.path.abspath(os.fspath(x)), "label": y}}, line_count - 1,
                labels=[((), "float32")])


def _check_source(x, y, sample_weight, what, needs_labels):
    if x is None:
        raise ValueError(f"{what} is missing")
    if is_batches(x):
        for name, value in (("y", y), ("sample_weight", sample_weight)):
            if value is not None:
                raise ValueError(f"{name} cannot be given for data that comes in batches, which "
                                 "have it")
        return
    if isinstance(x, (str, os.PathLike)) and not _is_path(x, (".npy", ".csv")):
        raise ValueError(f"{what} is the file {x}; expected a name that ends in .npy or .csv")
    if y is None and needs_labels and not _is_path(x, ".csv"):
        raise ValueError("y is missing; expected labels for each example")


def split_index(example_count, validation_split):
    """Returns the number of examples that Keras trains on.

    Computes in the type of validation_split, as Keras does.

    Raises:
      ValueError: one of the two parts would be empty.
    """
    count = int(math.floor(example_count * (1.0 - validation_split)))
    if 0 < count < example_count:
        return count
    raise ValueError(f"validation_split={validation_split} leaves {count} of {example_count} "
                     "examples to train on; expected some for training and some for validation")


def _batch_size_of(batch_size, steps, example_count):
    """Returns the batch size as Keras chooses it.

    It is `batch_size` if given, otherwise the size that results in `steps` batches, or 32
    without `steps`.
    """
    return batch_size or (-(-example_count // steps) if steps else 32)


def write_train(writer, schema, arguments, x, y=None, sample_weight=None):
    """Returns (train, validation), Data; validation is that of validation_split, or None.

    Args:
      writer: DataWriter.
      schema: Schema.
      arguments: job.Arguments.
      x, y, sample_weight: as Keras' fit() takes them; or paths of .npy files; or the
        path of a .csv file and the name of its label column.

    Raises:
      ValueError: the data is not of these kinds, or does not fit the model.
      OSError: a file cannot be read or written.
    """
    _check_source(x, y, sample_weight, "x", schema.needs_labels)
    if arguments.class_weight and sample_weight is not None:
        raise ValueError("class_weight and sample_weight cannot both be given")
    if arguments.class_weight and len(schema.outputs.names) > 1:
        raise ValueError("class_weight is for models with one output; this one has "
                         f"{', '.join(schema.outputs.names)}")
    if is_batches(x):
        return _train_of_batches(writer, arguments, x), None
    if _is_path(x, ".csv"):
        return _train_of_csv(arguments, _csv(x, y, sample_weight, "x"))
    train, validation = _train_of_arrays(writer, arguments, schema.example(x, y, sample_weight))
    train.is_used_once_per_pass = not _is_path(x, ".npy")
    return train, validation


def _train_of_batches(writer, arguments, x):
    if arguments.validation_split:
        raise ValueError("validation_split is for arrays; x comes in batches: pass "
                         "validation_data")
    steps = arguments.steps_per_epoch
    count = steps * (arguments.epochs - arguments.initial_epoch) if steps else None
    if count and writer.can_stream:
        data = writer.open_stream(x, "x", count)
        data.is_used_once_per_pass = True
        return data
    data, sizes = writer.write_batches("train", x, "x", count)
    if any(size != sizes[0] for size in sizes[:-1]) or sizes[-1] > sizes[0]:
        raise ValueError(f"x yields batches of different sizes, {_sizes_text(sizes)}; expected one "
                         "size for all but the last")
    data.batch_size = sizes[0]
    data.is_used_once_per_pass = True
    return data


def _train_of_csv(arguments, data):
    split = arguments.validation_split
    data.can_be_shuffled = True
    validation = None
    if split:
        count = split_index(data.example_count, split)
        rows = _validation_rows(arguments, data.example_count - count)
        # Uses all remaining rows if possible: lines of a file cannot be counted exactly.
        take = rows if rows < data.example_count - count else None
        validation = Data(dict(data.source), rows, skip=count, take=take)
        data.example_count = data.take = count
    data.batch_size = _batch_size_of(arguments.batch_size, arguments.steps_per_epoch,
                                     data.example_count)
    return data, validation


def _train_of_arrays(writer, arguments, parts):
    split = arguments.validation_split
    example_count = len(parts[0][0])
    count = split_index(example_count, split) if split else example_count
    train = writer.write_arrays("train", parts, 0, count)
    train.batch_size = _batch_size_of(arguments.batch_size, arguments.steps_per_epoch, count)
    train.can_be_shuffled = True
    if not split:
        return train, None
    end = count + _validation_rows(arguments, example_count - count)
    return train, writer.write_arrays("validation", parts, count, end)


def _sizes_text(sizes):
    shown = ", ".join(map(str, sizes[:5]))
    return f"{shown}, ..." if len(sizes) > 5 else shown


def _validation_rows(arguments, example_count):
    """Returns the number of rows in `validation_steps` batches."""
    steps = arguments.validation_steps
    if not steps:
        return example_count
    size = _batch_size_of(arguments.validation_batch_size or arguments.batch_size, steps,
                          example_count)
    return min(example_count, steps * size)


def _parts_of(validation_data, needs_labels):
    """Returns (x, y, sample_weight) of fit()'s validation_data."""
    if isinstance(validation_data, (tuple, list)):
        if len(validation_data) == 1 and not needs_labels:
            return validation_data[0], None, None
        if len(validation_data) not in (2, 3):
            raise ValueError(f"validation_data has {len(validation_data)} parts; expected (x, y) "
                             "or (x, y, sample_weight)")
        return tuple(validation_data) + (None,) * (3 - len(validation_data))
    return validation_data, None, None


def write_validation(writer, schema, arguments, validation_data):
    """Returns the Data for the rows of fit()'s validation_data that are used.

    Raises:
      as write_train()
    """
    what = "validation_data"
    x, y, sample_weight = _parts_of(validation_data, schema.needs_labels)
    _check_source(x, y, sample_weight, what, schema.needs_labels)
    if is_batches(x):
        return writer.write_batches("validation", x, what, arguments.validation_steps or None)[0]
    if _is_path(x, ".csv"):
        data = _csv(x, y, sample_weight, what)
        rows = _validation_rows(arguments, data.example_count)
        if rows < data.example_count:
            data.take = data.example_count = rows
        return data
    parts = schema.example(x, y, sample_weight)
    rows = _validation_rows(arguments, len(parts[0][0]))
    return writer.write_arrays("validation", parts, 0, rows)
