"""Writes training data as .npy files.

Data are arrays in memory, files, or batches that come one after the other. An
example is a list of components: the model's inputs, its labels, and its sample
weights, each with a row for every example.
"""

import os

import numpy as np

_COPIED_BYTES = 1 << 24


class NpyWriter:
    """Writes an array whose number of rows is known only at the end."""

    # Of the whole header; leaves room for any shape.
    _HEADER_BYTES = 256

    def __init__(self, path, dtype, row_shape):
        self._dtype = np.dtype(dtype)
        self._row_shape = tuple(row_shape)
        self._file = open(path, "wb")
        self.row_count = 0
        self._write_header()

    def append(self, rows):
        rows = np.ascontiguousarray(rows, dtype=self._dtype)
        if rows.shape[1:] != self._row_shape:
            raise ValueError(f"rows have the shape {rows.shape[1:]}; expected "
                             f"{self._row_shape} as in the first batch")
        self._file.write(rows.data)
        self.row_count += len(rows)

    def close(self):
        self._file.seek(0)
        self._write_header()
        self._file.close()

    def _write_header(self):
        shape = (self.row_count,) + self._row_shape
        text = (f"{{'descr': '{np.lib.format.dtype_to_descr(self._dtype)}', "
                f"'fortran_order': False, 'shape': {shape}, }}")
        length = self._HEADER_BYTES - 10
        self._file.write(b"\x93NUMPY\x01\x00" + length.to_bytes(2, "little")
                         + text.ljust(length - 1).encode("latin1") + b"\n")


def _as_array(value, what):
    if isinstance(value, (str, os.PathLike)):
        path = os.fspath(value)
        if not path.endswith(".npy"):
            raise ValueError(f"{what} is the file {path}; expected a name that ends in .npy")
        return np.load(path, mmap_mode="r", allow_pickle=False)
    array = np.asarray(value)
    if array.dtype.kind not in "fiub":
        raise ValueError(f"{what} has the dtype {array.dtype}; expected numbers")
    if array.ndim == 0:
        raise ValueError(f"{what} is a scalar; expected a row for each example")
    return array


def components(value, names, what):
    """Returns the arrays of x, y or sample_weight in the order of `names`.

    Args:
      value: an array for the only name, or a list or a dict with one for each.
      names: the names of the model's inputs or outputs.
      what: what errors call it.

    Raises:
      ValueError: a name is missing or unknown, or something is not an array.
    """
    if isinstance(value, dict):
        if set(value) != set(names):
            raise ValueError(f"{what} has the names {sorted(value)}; expected {sorted(names)}")
        value = [value[name] for name in names]
    elif len(names) > 1:
        if not isinstance(value, (list, tuple)) or len(value) != len(names):
            raise ValueError(f"{what} must be a list or a dict with {len(names)} arrays: "
                             f"{', '.join(names)}")
    elif isinstance(value, (list, tuple)) and len(value) == 1 and np.ndim(value[0]) > 0:
        pass
    else:
        value = [value]
    return [_as_array(item, what if len(names) == 1 else f"{what}[{name!r}]")
            for item, name in zip(value, names)]


def stored_dtype(dtype, wanted=None):
    """Returns the dtype that an array of `dtype` is written with.

    `wanted` is the dtype of the model's input. Without it integers are written as
    int64, which class numbers are, and other numbers as float32.
    """
    if wanted is not None:
        return np.dtype("float32") if wanted in ("float16", "bfloat16") else np.dtype(wanted)
    return np.dtype("int64" if np.dtype(dtype).kind in "iu" else "float32")


class ArrayFiles:
    """Where the components of examples are written. Complete when the context ends.

    Args:
      folder: is made if it is missing.
      prefix: of the files' names: "train" makes train_0.npy, train_1.npy, ...
      dtypes: what each component is written as; None as stored_dtype() says.
    """

    def __init__(self, folder, prefix, dtypes):
        self._folder = folder
        self._prefix = prefix
        self._dtypes = dtypes
        self._writers = []

    def path(self, index):
        return os.path.join(self._folder, f"{self._prefix}_{index}.npy")

    def append(self, arrays):
        """Appends the rows of one array for each component."""
        row_counts = {len(array) for array in arrays}
        if len(row_counts) != 1:
            raise ValueError("x, y and sample_weight have different numbers of rows: "
                             f"{[len(array) for array in arrays]}")
        if not self._writers:
            os.makedirs(self._folder, exist_ok=True)
            for index, array in enumerate(arrays):
                wanted = self._dtypes[index] if index < len(self._dtypes) else None
                self._writers.append(NpyWriter(
                    self.path(index), stored_dtype(array.dtype, wanted), array.shape[1:]))
        if len(arrays) != len(self._writers):
            raise ValueError(f"a batch has {len(arrays)} arrays; expected {len(self._writers)} "
                             "as in the first one")
        for array, writer in zip(arrays, self._writers):
            rows = max(1, _COPIED_BYTES // max(1, array[:1].nbytes))
            for begin in range(0, len(array), rows):
                writer.append(array[begin:begin + rows])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for writer in self._writers:
            writer.close()

    @property
    def example_count(self):
        return self._writers[0].row_count if self._writers else 0


def is_batches(x):
    """Whether `x` yields batches: a tf.data.Dataset, a PyDataset, a loader, a generator."""
    if isinstance(x, (str, os.PathLike, list, tuple, dict)) or hasattr(x, "__array__"):
        return False
    return hasattr(x, "__iter__") or (hasattr(x, "__getitem__") and hasattr(x, "__len__"))


def batches_of(x, what):
    """Yields the batches of `x` once, each (x, y) or (x, y, sample_weight).

    Raises:
      ValueError: the batches have no end, or have no labels.
    """
    if hasattr(x, "as_numpy_iterator"):
        if int(x.cardinality()) == -1:
            raise ValueError(f"{what} is a dataset without end; use take()")
        batches = x.as_numpy_iterator()
    elif hasattr(x, "__getitem__") and hasattr(x, "__len__"):
        count = len(x) if getattr(x, "num_batches", None) is None else x.num_batches
        batches = (x[index] for index in range(count))
    else:
        batches = iter(x)
    for batch in batches:
        if not isinstance(batch, (tuple, list)) or len(batch) not in (2, 3):
            raise ValueError(f"{what} yields batches that are not (x, y) or "
                             "(x, y, sample_weight)")
        yield tuple(batch)
