"""Data in batches: datasets, loaders and generators."""

import itertools
import os


def is_batches(x):
    """True if `x` yields batches: a tf.data.Dataset, a PyDataset, a loader, a generator."""
    if isinstance(x, (str, os.PathLike, list, tuple, dict)) or hasattr(x, "__array__"):
        return False
    if hasattr(x, "tocoo") or hasattr(x, "dense_shape") or hasattr(x, "todense"):
        return False  # Sparse matrices.
    return hasattr(x, "__iter__") or (hasattr(x, "__getitem__") and hasattr(x, "__len__")) \
        or hasattr(x, "get_numpy_iterator") or hasattr(x, "num_batches")


def _of_dataset(x, what, count):
    if count is not None:
        return x.take(count).as_numpy_iterator()
    if int(x.cardinality()) == -1:
        raise ValueError(f"{what} is a dataset without end; pass the number of its batches as "
                         "steps, or use take()")
    return x.as_numpy_iterator()


def _of_sequence(x, what, count):
    """Yields the batches of a PyDataset, or of an object with a length and items."""
    if hasattr(x, "num_batches"):
        size = x.num_batches
    else:
        size = len(x)
    if size is None and count is None:
        raise ValueError(f"{what} is a {type(x).__name__} without end; pass the number of its "
                         "batches as steps")
    sizes = [number for number in (size, count) if number is not None]
    return (x[index] for index in range(min(sizes)))


def batches_of(x, what, count=None, needs_labels=True):
    """Yields the batches of `x`, each (x, y) or (x, y, sample_weight).

    Args:
      what: the name of `x` in error messages.
      count: maximum number of batches; no more are drawn from `x`.
      needs_labels: False if `x` may yield features alone; they become (x, None).

    Raises:
      ValueError: the batches have no end and there is no count, or they have no labels.
    """
    if hasattr(x, "as_numpy_iterator"):
        found = _of_dataset(x, what, count)
    elif hasattr(x, "get_numpy_iterator"):
        found = iter(x.get_numpy_iterator())
    elif hasattr(x, "__getitem__") and (hasattr(x, "num_batches") or hasattr(x, "__len__")):
        found = _of_sequence(x, what, count)
    else:
        found = iter(x)
    for batch in itertools.islice(found, count):
        if isinstance(batch, list):
            batch = tuple(batch)
        if not needs_labels and not isinstance(batch, tuple):
            batch = (batch,)
        if not needs_labels and len(batch) == 1:
            batch = (*batch, None)
        if not isinstance(batch, tuple) or len(batch) not in (2, 3):
            size = f" of {len(batch)}" if hasattr(batch, "__len__") else ""
            raise ValueError(f"{what} yields a {type(batch).__name__}{size}; expected batches "
                             "(x, y) or (x, y, sample_weight)")
        yield batch
