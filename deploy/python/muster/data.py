"""The data of fit(), as sources of a job file."""

import os

from muster import arrays
from muster.job import Data

_FOLDER = "data"


def _is_path(value, suffix):
    return isinstance(value, (str, os.PathLike)) and os.fspath(value).endswith(suffix)


class Schema:
    """What a model takes: the names and dtypes of its inputs, and the names of its outputs."""

    def __init__(self, input_names, input_dtypes, output_names):
        self.input_names = input_names
        self.input_dtypes = input_dtypes
        self.output_names = output_names

    @classmethod
    def of(cls, model):
        """Returns that of a built model of Keras."""
        # A Sequential model has one output, and no names.
        return cls([tensor.name for tensor in model.inputs],
                   [tensor.dtype for tensor in model.inputs],
                   list(getattr(model, "output_names", ["output"])))

    def dtypes(self):
        """Of the components of an example; None as arrays.stored_dtype() says."""
        output_count = len(self.output_names)
        return self.input_dtypes + [None] * output_count + ["float32"] * output_count

    def example(self, x, y, sample_weight=None):
        """Returns (inputs, labels, sample weights), lists of arrays."""
        inputs = arrays.components(x, self.input_names, "x")
        labels = arrays.components(y, self.output_names, "y")
        if sample_weight is None:
            return inputs, labels, []
        is_for_each = isinstance(sample_weight, dict) or (
            isinstance(sample_weight, (list, tuple)) and len(self.output_names) > 1)
        names = self.output_names if is_for_each else ["all"]
        return inputs, labels, arrays.components(sample_weight, names, "sample_weight")


def _npy_source(files, counts):
    """The job's npy source of files that ArrayFiles wrote: inputs, labels, weights."""
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


def _write(folder, prefix, schema, examples):
    """Writes what `examples` yields: (x, y) or (x, y, sample_weight)."""
    counts = None
    sizes = []
    with arrays.ArrayFiles(os.path.join(folder, _FOLDER), prefix, schema.dtypes()) as files:
        for example in examples:
            parts = schema.example(*example)
            counts = tuple(len(part) for part in parts)
            flat = [array for part in parts for array in part]
            files.append(flat)
            sizes.append(len(flat[0]))
    if files.example_count == 0:
        raise ValueError(f"the {prefix} data has no examples")
    return Data(_npy_source(files, counts), files.example_count), sizes


def _write_batches(folder, prefix, schema, x, what):
    data, sizes = _write(folder, prefix, schema, arrays.batches_of(x, what))
    if any(size != sizes[0] for size in sizes[:-1]) or sizes[-1] > sizes[0]:
        raise ValueError(f"{what} yields batches of different sizes; expected one size for all "
                         "but the last")
    data.batch_size = sizes[0]
    return data


def _csv(x, y, sample_weight, what):
    if not isinstance(y, str):
        raise ValueError(f"{what} is the file {x}; expected the name of its label column as y")
    if sample_weight is not None:
        raise ValueError("sample_weight is not supported for CSV files; pass arrays")
    with open(x, "rb") as file:
        line_count = sum(1 for line in file if line.strip())
    return Data({"csv": {"path": os.path.abspath(os.fspath(x)), "label": y}}, line_count - 1)


def write_data(folder, prefix, schema, x, y=None, sample_weight=None):
    """Returns the Data of a job in `folder`, and writes its arrays there.

    Args:
      folder: of the job file.
      prefix: "train" or "validation".
      schema: of the model.
      x, y, sample_weight: as Keras' fit() takes them; or paths of .npy files; or the
        path of a .csv file and the name of its label column.

    Raises:
      ValueError: the data is not of these kinds, or does not fit the model.
      OSError: a file cannot be read or written.
    """
    what = "x" if prefix == "train" else "validation_data"
    if x is None:
        raise ValueError(f"{what} is missing")
    if _is_path(x, ".csv"):
        return _csv(x, y, sample_weight, what)
    if isinstance(x, (str, os.PathLike)) and not _is_path(x, ".npy"):
        raise ValueError(f"{what} is the file {x}; expected a name that ends in .npy or .csv")
    if not arrays.is_batches(x):
        if y is None:
            raise ValueError("y is missing; expected labels for each example")
        return _write(folder, prefix, schema, [(x, y, sample_weight)])[0]
    for name, value in (("y", y), ("sample_weight", sample_weight)):
        if value is not None:
            raise ValueError(f"{name} cannot be given for data that comes in batches, which "
                             "have it")
    return _write_batches(folder, prefix, schema, x, what)
