"""Arrays of examples, and the .npy files that they are written to."""

import os
import shutil

import numpy as np

from muster import columns

_COPIED_BYTES = 1 << 24
STRING = "string"


class Budget:
    """Limits the number of bytes of data that are written.

    Args:
      folder: where the data is written; must exist.
      bytes_max: the limit. None: half of the free space on the disk of the folder.
    """

    def __init__(self, folder, bytes_max=None):
        self._folder = folder
        self._is_given = bytes_max is not None
        self._bytes_max = bytes_max if self._is_given else shutil.disk_usage(folder).free // 2
        self.bytes_used = 0

    def has_room_for(self, byte_count):
        return self.bytes_used + byte_count <= self._bytes_max

    def release(self, byte_count):
        """Subtracts bytes after files were removed."""
        self.bytes_used -= byte_count

    def spend(self, byte_count):
        """Counts bytes before they are written.

        Raises:
          ValueError: the limit would be exceeded.
        """
        if self.has_room_for(byte_count):
            self.bytes_used += byte_count
            return
        limit = "" if self._is_given else ", half of what was free there"
        raise ValueError(
            f"the data needs more than data_bytes_max={self._bytes_max} bytes in {self._folder}"
            f"{limit}; pass steps_per_epoch for data without end, train fewer epochs, or set "
            "run_dir to a folder on a larger disk, or data_bytes_max")


class NpyWriter:
    """Writes an array whose number of rows is known only at the end.

    Strings are written as bytes in UTF-8. Their width grows with the longest one.
    """

    # Size of the whole header, with space for any shape.
    _HEADER_BYTES = 256

    def __init__(self, path, dtype, row_shape):
        self._path = path
        self._dtype = np.dtype("S1") if dtype == STRING else np.dtype(dtype)
        self._row_shape = tuple(row_shape)
        self._file = open(path, "wb")
        self.row_count = 0
        self._write_header()

    @property
    def dtype(self):
        return STRING if self._dtype.kind == "S" else self._dtype

    def append(self, rows):
        if rows.shape[1:] != self._row_shape:
            raise ValueError(f"rows have the shape {rows.shape[1:]}; expected "
                             f"{self._row_shape} as in the first batch")
        if self._dtype.kind == "S" and rows.dtype.itemsize > self._dtype.itemsize:
            self._widen(max(rows.dtype.itemsize, 2 * self._dtype.itemsize))
        rows = np.ascontiguousarray(rows, dtype=self._dtype)
        self._file.write(rows.data if rows.size else b"")
        self.row_count += len(rows)

    def close(self):
        self._file.seek(0)
        self._write_header()
        self._file.close()

    def _widen(self, width):
        """Rewrites the file with space for longer strings."""
        self.close()
        if self.row_count == 0:
            written = np.empty((0,) + self._row_shape, self._dtype)
        else:
            written = np.load(self._path, mmap_mode="r")
        os.unlink(self._path)  # `written` still maps the content.
        self._dtype = np.dtype(f"S{width}")
        self._file = open(self._path, "wb")
        self._write_header()
        rows = max(1, _COPIED_BYTES // max(1, width))
        for begin in range(0, len(written), rows):
            self._file.write(written[begin:begin + rows].astype(self._dtype).tobytes())

    def _write_header(self):
        shape = (self.row_count,) + self._row_shape
        text = (f"{{'descr': '{np.lib.format.dtype_to_descr(self._dtype)}', "
                f"'fortran_order': False, 'shape': {shape}, }}")
        length = self._HEADER_BYTES - 10
        self._file.write(b"\x93NUMPY\x01\x00" + length.to_bytes(2, "little")
                         + text.ljust(length - 1).encode("latin1") + b"\n")


def _class_name(value):
    return f"{type(value).__module__}.{type(value).__name__}"


def _dense(value, what):
    """Returns a sparse tensor or matrix as an array, and other values unchanged."""
    module = type(value).__module__
    name = type(value).__name__
    if module.startswith("tensorflow.") and name in ("RaggedTensor", "RaggedTensorValue"):
        raise ValueError(f"{what} is a RaggedTensor; expected rows of one shape, such as its "
                         "to_tensor()")
    if module.startswith("tensorflow.") and name in ("SparseTensor", "SparseTensorValue"):
        array = np.zeros(tuple(np.asarray(value.dense_shape)), np.asarray(value.values).dtype)
        array[tuple(np.asarray(value.indices).T)] = np.asarray(value.values)
        return array
    if module.startswith("scipy.sparse"):
        return value.toarray()
    if module.startswith("jax.experimental.sparse"):
        return np.asarray(value.todense())
    if module.split(".")[0] == "torch" and hasattr(value, "detach"):
        return value.detach().cpu().numpy()
    return value


def _encoded(array, what):
    """Returns an array of strings as an array of bytes in UTF-8."""
    def encode(value):
        if isinstance(value, str):
            value = value.encode("utf-8")
        if not isinstance(value, bytes):
            raise ValueError(f"{what} has a {type(value).__name__}; expected strings")
        if value.endswith(b"\0"):
            raise ValueError(f"{what} has a string that ends in a zero byte, which is not "
                             "supported")
        return value

    flat = [encode(value) for value in array.ravel().tolist()]
    width = max((len(value) for value in flat), default=1)
    return np.array(flat, dtype=f"S{max(1, width)}").reshape(array.shape)


def as_array(value, what):
    """Converts an argument of fit() to an array of numbers, or of bytes for strings.

    Args:
      value: an array, tensor, sparse matrix, data frame, series or list; or the path
        of a .npy file.
      what: its name in error messages.

    Raises:
      ValueError: `value` is none of these, or has values that are neither numbers nor
        strings.
    """
    if isinstance(value, (str, os.PathLike)):
        path = os.fspath(value)
        if not path.endswith(".npy"):
            raise ValueError(f"{what} is the file {path}; expected a name that ends in .npy")
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    elif columns.is_frame(value):
        array = columns.of_frame(value, what)
    elif columns.is_series(value):
        array = columns.of_series(value, what)[:, np.newaxis]  # Adds an axis, as Keras does.
    else:
        try:
            array = np.asarray(_dense(value, what))
        except (TypeError, ValueError) as error:
            raise ValueError(f"{what} is a {_class_name(value)}, which cannot be "
                             f"converted to an array: {error}") from error
    if array.ndim == 0:
        kind = "a scalar" if array.dtype.kind != "O" else f"a {_class_name(value)}"
        raise ValueError(f"{what} is {kind}; expected a row for each example")
    return _as_numbers_or_bytes(array, what)


def _as_numbers_or_bytes(array, what):
    kind = array.dtype.kind
    if kind == "O":
        values = array.ravel()
        if len(values) > 0 and isinstance(values[0], (str, bytes)):
            return _encoded(array, what)
        try:
            if any(value is None for value in values):
                raise ValueError("None is missing data")
            return array.astype("float64")
        except (TypeError, ValueError) as error:
            raise ValueError(f"{what} has objects that are neither all numbers nor all strings: "
                             f"{error}") from error
    if kind in "UST":
        return _encoded(array, what)
    if kind == "V" and array.dtype.name in ("bfloat16", "float8_e4m3fn", "float8_e5m2"):
        return array.astype("float32")
    if kind not in "fiub":
        raise ValueError(f"{what} has the dtype {array.dtype}; expected numbers or strings")
    return array


def stored_dtype(dtype, wanted, what):
    """Returns the dtype in the file for an array of `dtype`.

    Args:
      wanted: the dtype of the model's input. None: int64 for integers, which are class
        numbers, and float32 for other numbers.
      what: the array's name in error messages.

    Raises:
      ValueError: the array has strings and the input does not, or the reverse.
    """
    has_strings = np.dtype(dtype).kind == "S"
    if has_strings != (wanted == STRING):
        found, expected = ("strings", "numbers") if has_strings else ("numbers", "strings")
        raise ValueError(f"{what} has {found}; the model takes {expected} there")
    if has_strings:
        return STRING
    if wanted is not None:
        return np.dtype("float32") if wanted in ("float16", "bfloat16") else np.dtype(wanted)
    return np.dtype("int64" if np.dtype(dtype).kind in "iu" else "float32")


def model_dtype(dtype):
    """Returns the dtype with which a model under JAX gets arrays of `dtype`."""
    dtype = np.dtype(dtype)
    return {"float64": "float32", "int64": "int32", "uint64": "int32", "uint32": "int32",
            "int16": "int32", "uint16": "int32", "int8": "int32"}.get(dtype.name, dtype.name)


def example_types(arrays):
    """Returns (shape, dtype) of an example of each array."""
    return [(array.shape[1:], array.dtype) for array in arrays]


class ArrayFiles:
    """Files for the components of examples. They are complete when the context ends.

    Args:
      folder: created if it does not exist.
      prefix: prefix of the files' names: "train" for train_0.npy, train_1.npy, ...
      dtypes: the dtype of each component; None selects it as stored_dtype() does.
      budget: Budget.
    """

    def __init__(self, folder, prefix, dtypes, budget):
        self._folder = folder
        self._prefix = prefix
        self._dtypes = dtypes
        self._budget = budget
        self._writers = []

    def path(self, index):
        return os.path.join(self._folder, f"{self._prefix}_{index}.npy")

    def append(self, arrays, names):
        """Appends the rows of one array for each component; `names` are for errors."""
        row_counts = {len(array) for array in arrays}
        if len(row_counts) != 1:
            raise ValueError("x, y and sample_weight have different numbers of rows: "
                             f"{[len(array) for array in arrays]}")
        if not self._writers:
            os.makedirs(self._folder, exist_ok=True)
            for index, (array, name) in enumerate(zip(arrays, names)):
                wanted = self._dtypes[index] if index < len(self._dtypes) else None
                self._writers.append(NpyWriter(
                    self.path(index), stored_dtype(array.dtype, wanted, name), array.shape[1:]))
        if len(arrays) != len(self._writers):
            raise ValueError(f"a batch has {len(arrays)} arrays; expected {len(self._writers)} "
                             "as in the first one")
        for array, writer in zip(arrays, self._writers):
            self._budget.spend(array.nbytes)
            rows = max(1, _COPIED_BYTES // max(1, array[:1].nbytes))
            for begin in range(0, len(array), rows):
                writer.append(array[begin:begin + rows])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for writer in self._writers:
            writer.close()

    @property
    def dtypes(self):
        """Returns the dtype in the file of each component, as for the argument `dtypes`."""
        return [writer.dtype for writer in self._writers]

    @property
    def example_count(self):
        return self._writers[0].row_count if self._writers else 0
