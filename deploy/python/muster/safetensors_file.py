"""Files of the safetensors format: named tensors.

The format is that of github.com/huggingface/safetensors: the length of the header as 8 bytes, a
header in JSON, and the tensors. All numbers are little-endian, and tensors are in row-major order
without gaps.
"""

import json
import math
import os
import struct
import sys
import tempfile

import numpy as np

_LENGTH = struct.Struct("<Q")
_HEADER_BYTES_MAX = 100_000_000  # The limit of the format.
_ALIGNMENT = 8
_METADATA = "__metadata__"
# Names of NumPy and, for those that NumPy lacks, of ml_dtypes.
_DTYPES = {
    "F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16",
    "F8_E4M3": "float8_e4m3fn", "F8_E5M2": "float8_e5m2",
    "I64": "int64", "I32": "int32", "I16": "int16", "I8": "int8",
    "U64": "uint64", "U32": "uint32", "U16": "uint16", "U8": "uint8", "BOOL": "bool",
    "C64": "complex64"}
_CODES = {name: code for code, name in _DTYPES.items()}


def dtype_named(name):
    """Returns the dtype with a name such as "float32" or "bfloat16"."""
    try:
        return np.dtype(name)
    except TypeError:
        import ml_dtypes  # Comes with Keras.

        return np.dtype(getattr(ml_dtypes, name))


def _little_endian(array):
    """Returns the array, contiguous and with little-endian numbers."""
    array = np.ascontiguousarray(array)
    if array.dtype.byteorder == ">" or (array.dtype.byteorder == "=" and sys.byteorder == "big"):
        return array.byteswap().view(array.dtype.newbyteorder("<"))
    return array


def _header(tensors):
    """Returns (bytes of the header with its length, names of the tensors in their order)."""
    for name, array in tensors.items():
        if not isinstance(name, str) or name == _METADATA:
            raise ValueError(f"a tensor is called {name!r}; expected another string")
        if array.dtype.name not in _CODES:
            raise ValueError(f"the tensor {name} has dtype {array.dtype}; expected one of "
                             f"{', '.join(_CODES)}")
    # Larger numbers first, so that all are aligned.
    names = sorted(tensors, key=lambda name: (-tensors[name].dtype.itemsize, name))
    fields, offset = {}, 0
    for name in names:
        array = tensors[name]
        end = offset + array.nbytes
        fields[name] = {"dtype": _CODES[array.dtype.name], "shape": list(array.shape),
                        "data_offsets": [offset, end]}
        offset = end
    text = json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-len(text) % _ALIGNMENT)
    if len(text) > _HEADER_BYTES_MAX:
        raise ValueError(f"the header has {len(text)} bytes; expected at most {_HEADER_BYTES_MAX}")
    return _LENGTH.pack(len(text)) + text, names


def write(path, tensors):
    """Replaces a file. Readers see the old or the new one.

    Args:
      tensors: {name: array of NumPy}.

    Raises:
      ValueError: the format has no such name or dtype; names the tensor.
      OSError: the file cannot be written.
    """
    header, names = _header(tensors)
    path = os.path.abspath(path)
    with tempfile.NamedTemporaryFile(dir=os.path.dirname(path), delete=False) as file:
        try:
            file.write(header)
            for name in names:
                file.write(_little_endian(tensors[name]).tobytes())
            file.flush()
            os.fsync(file.fileno())
            os.chmod(file.name, 0o666 & ~_umask())
            os.replace(file.name, path)
        except BaseException:
            os.unlink(file.name)
            raise


def _umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask


class _Damaged(ValueError):
    pass


def _unique(pairs):
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise _Damaged("a name occurs twice in the header")
    return fields


def _is_count(value):
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _read_header(file, file_bytes):
    """Returns (fields of the header, offset of the tensors in the file)."""
    begin = file.read(_LENGTH.size)
    if len(begin) < _LENGTH.size:
        raise _Damaged(f"it has {file_bytes} bytes; expected at least {_LENGTH.size}")
    size, = _LENGTH.unpack(begin)
    if size > min(_HEADER_BYTES_MAX, file_bytes - _LENGTH.size):
        raise _Damaged(f"its header has {size} bytes; expected at most {_HEADER_BYTES_MAX}, in a "
                       f"file of {file_bytes}")
    try:
        fields = json.loads(file.read(size).decode("utf-8"), object_pairs_hook=_unique)
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise _Damaged(f"its header is no JSON: {error}") from None
    if not isinstance(fields, dict):
        raise _Damaged("its header is no object of JSON")
    fields.pop(_METADATA, None)
    return fields, _LENGTH.size + size


def _entry(name, fields):
    """Returns (dtype, shape, begin, end) of a tensor in the header."""
    if not isinstance(fields, dict):
        raise _Damaged(f"the tensor {name} is {fields!r}; expected dtype, shape and data_offsets")
    dtype, shape = fields.get("dtype"), fields.get("shape")
    offsets = fields.get("data_offsets")
    if dtype not in _DTYPES:
        raise _Damaged(f"the tensor {name} has dtype {dtype!r}; expected one of "
                       f"{', '.join(_DTYPES)}")
    for what, value in (("shape", shape), ("data_offsets", offsets)):
        if not isinstance(value, list) or not all(map(_is_count, value)):
            raise _Damaged(f"the tensor {name} has {what} {value!r}; expected a list of numbers")
    if len(offsets) != 2:
        raise _Damaged(f"the tensor {name} has data_offsets {offsets}; expected two numbers")
    dtype = dtype_named(_DTYPES[dtype])
    size = math.prod(shape) * dtype.itemsize
    if offsets[1] - offsets[0] != size:
        raise _Damaged(f"the tensor {name} has data_offsets {offsets}; expected {size} bytes, for "
                       f"shape {shape} of {dtype}")
    return dtype, shape, *offsets


def _read(file, file_bytes):
    fields, start = _read_header(file, file_bytes)
    entries = sorted(((name, *_entry(name, entry)) for name, entry in fields.items()),
                     key=lambda entry: entry[3:])
    position = 0
    for name, _, _, begin, end in entries:
        if begin != position:
            raise _Damaged(f"the tensor {name} begins at {begin}; expected {position}, where the "
                           "one before ends")
        position = end
    if start + position != file_bytes:
        raise _Damaged(f"it has {file_bytes} bytes; expected {start + position} from its header")
    tensors = {}
    for name, dtype, shape, begin, end in entries:
        data = bytearray(end - begin)
        if file.readinto(data) != len(data):
            raise _Damaged(f"it ends within the tensor {name}")
        array = np.frombuffer(data, np.uint8).view(dtype).reshape(shape)
        tensors[name] = array if sys.byteorder == "little" else array.byteswap()
    return {name: tensors[name] for name in fields}


def read(path):
    """Returns {name: array of NumPy}, in the order of the header.

    Checks everything that the header says: the file is not trusted.

    Raises:
      ValueError: the file is damaged, or is none of this format; names it and the tensor.
      OSError: the file cannot be read.
    """
    with open(path, "rb") as file:
        try:
            return _read(file, os.fstat(file.fileno()).st_size)
        except _Damaged as error:
            raise ValueError(f"{os.fspath(path)} is no file of safetensors: {error}") from None
