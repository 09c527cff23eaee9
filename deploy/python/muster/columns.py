"""Series and data frames of pandas as arrays."""

import numpy as np

_HINTS = {
    "M": "has dates; pass numbers, such as its .astype('int64')",
    "m": "has durations; pass numbers, such as its .dt.total_seconds()",
    "c": "has complex numbers; pass its real and imaginary parts as two columns",
}


def is_series(value):
    return _is_of_pandas(value) and value.ndim == 1 and hasattr(value, "array")


def is_frame(value):
    return _is_of_pandas(value) and value.ndim == 2


def _is_of_pandas(value):
    return (any(kind.__module__.split(".")[0] == "pandas" for kind in type(value).__mro__)
            and hasattr(value, "ndim"))


def _of_numbers(column, what):
    """Returns the values of a column with a numeric dtype."""
    if isinstance(column.dtype, np.dtype):
        return column.to_numpy()
    if column.isna().any():
        return column.to_numpy(dtype="float64", na_value=np.nan)
    try:
        return column.to_numpy(dtype=column.dtype.numpy_dtype)
    except (AttributeError, TypeError, ValueError) as error:
        raise ValueError(f"{what} has the dtype {column.dtype}: {error}") from error


def _of_objects(column, what):
    """Returns the values of a column of Python objects: all strings, or all numbers."""
    values = column.to_numpy(dtype=object)
    is_missing = column.isna().to_numpy()
    are_strings = [isinstance(value, (str, bytes)) for value in values[~is_missing]]
    if are_strings and all(are_strings):
        if is_missing.any():
            raise ValueError(f"{what} has no string in row {int(np.argmax(is_missing))}; fill "
                             "missing strings with .fillna('')")
        return values
    if any(are_strings):
        raise ValueError(f"{what} has strings and other values; expected one kind")
    try:
        return np.array([np.nan if missing else float(value)
                         for value, missing in zip(values, is_missing)])
    except (TypeError, ValueError) as error:
        raise ValueError(f"{what} has values that are no numbers: {error}") from error


def of_series(column, what):
    """Returns the values of a series, one for each row: numbers, or strings as objects.

    Missing numbers are NaN.

    Args:
      column: a pandas.Series of any dtype.
      what: its name in error messages.

    Raises:
      ValueError: the series has dates, durations, intervals, missing strings or other
        values that are neither numbers nor strings; says what to pass instead.
    """
    dtype = column.dtype
    if hasattr(dtype, "categories"):
        return of_series(column.astype(dtype.categories.dtype)
                         if not column.isna().any() else column.astype(object), what)
    if hasattr(column, "sparse"):
        return column.sparse.to_dense().to_numpy()
    kind = getattr(dtype, "kind", "O")
    if kind in "biuf":
        return _of_numbers(column, what)
    if kind in _HINTS:
        raise ValueError(f"{what} {_HINTS[kind]}")
    name = str(dtype)
    if name.startswith(("period", "interval")):
        raise ValueError(f"{what} has the dtype {name}; expected numbers or strings")
    return _of_objects(column, what)


def of_frame(frame, what):
    """Returns the values of a data frame, [rows, columns], as of_series().

    Raises:
      ValueError: as of_series(), naming the column; or some columns have strings and
        others numbers.
    """
    if frame.shape[1] == 0:
        raise ValueError(f"{what} has no columns")
    names = [f"{what}, column {name!r}" for name in frame.columns]
    columns = [of_series(frame.iloc[:, index], name) for index, name in enumerate(names)]
    with_strings = [name for name, column in zip(names, columns) if column.dtype.kind == "O"]
    if with_strings and len(with_strings) < len(columns):
        raise ValueError(f"{with_strings[0]}, has strings, and other columns have numbers; pass "
                         "them to different inputs of the model")
    return np.stack(columns, axis=1)
