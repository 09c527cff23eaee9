"""Batches that are written while training reads them.

docs/formats.md describes the folder. A batch is removed once all processes that train have
read it, so that the number of batches on disk is bounded.
"""

import os
import shutil
import time

from muster import arrays

_BATCHES_AHEAD_MAX = 64
_POLL_SECONDS = 0.005


class BatchStream:
    """Draws batches and writes them into a folder, as long as training needs them.

    Args:
      folder: created by the constructor.
      schema: data.Schema.
      batches: an iterator of batches (x, y) or (x, y, sample_weight).
      batch_count: maximum number of batches to draw.
      reader_count: number of processes that read the batches.
      budget: arrays.Budget.
    """

    def __init__(self, folder, schema, batches, batch_count, reader_count, budget):
        self._folder = folder
        self._schema = schema
        self._batches = batches
        self._batch_count = batch_count
        self._reader_count = reader_count
        self._budget = budget
        self._dtypes = schema.dtypes()
        self._row_shapes = None
        self._sizes = []  # Size in bytes of each batch on disk, oldest first.
        self._written_count = 0
        self._removed_count = 0
        self._last_size = None
        self.counts = None  # Numbers of inputs, labels and sample weights.
        self.batch_size = None
        # (shape of an example, dtype) of each input, and of each output's labels.
        self.inputs, self.labels = [], []
        os.makedirs(folder)

    def write_first(self):
        """Draws one batch and writes it.

        Raises:
          ValueError: there is no batch, or it does not match the model.
        """
        if not self._write_next(lambda: True):
            raise ValueError("the train data has no examples")

    def write_others(self, is_needed):
        """Draws and writes batches until batch_count is reached or the iterator ends.

        Args:
          is_needed: returns False when training has ended.

        Raises:
          ValueError: a batch differs from the first one, or does not fit into the budget.
          any: raised by the iterator.
        """
        try:
            while self._written_count < self._batch_count and is_needed():
                if not self._write_next(is_needed):
                    break
        finally:
            # Tells readers that wait for another batch that there is none.
            self._write_number("end", self._written_count)

    def remove(self):
        """Removes the folder."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def _write_next(self, is_needed):
        """Writes the next batch. Returns False if there is none, or it is not needed."""
        batch = next(self._batches, None)
        if batch is None:
            return False
        parts = self._schema.example(*batch)
        flat = [array for part in parts for array in part]
        self._check(parts, flat)
        byte_count = sum(array.nbytes for array in flat)
        while not self._has_room(byte_count):
            self._remove_what_was_read()
            if not is_needed():
                return False
            time.sleep(_POLL_SECONDS)
        self._write(parts, flat)
        self._sizes.append(byte_count)
        self._written_count += 1
        return True

    def _has_room(self, byte_count):
        if not self._sizes:
            return True
        return len(self._sizes) < _BATCHES_AHEAD_MAX and self._budget.has_room_for(byte_count)

    def _check(self, parts, flat):
        """Raises ValueError unless the batch is like the first one."""
        counts = tuple(len(part) for part in parts)
        shapes = [array.shape[1:] for array in flat]
        size = len(flat[0])
        if self.counts is None:
            self.counts, self._row_shapes, self.batch_size = counts, shapes, size
            self.inputs, self.labels = map(arrays.example_types, parts[:2])
        names = self._schema.component_names(counts)
        if counts != self.counts:
            raise ValueError(f"batch {self._written_count} of x has {', '.join(names)}; expected "
                             f"{', '.join(self._schema.component_names(self.counts))} as in the "
                             "first one")
        for name, shape, first in zip(names, shapes, self._row_shapes):
            if shape != first:
                raise ValueError(f"batch {self._written_count} of x has {name} with rows of "
                                 f"{shape}; expected {first} as in the first one")
        other = size if size > self.batch_size else self._last_size
        if other not in (None, self.batch_size):
            raise ValueError(f"x yields batches of different sizes, {self.batch_size} and {other}; "
                             "expected one size for all but the last")
        self._last_size = size

    def _write(self, parts, flat):
        temporary = os.path.join(self._folder, "writing")
        shutil.rmtree(temporary, ignore_errors=True)
        names = self._schema.component_names(tuple(len(part) for part in parts))
        with arrays.ArrayFiles(temporary, "array", self._dtypes, self._budget) as files:
            files.append(flat, names)
        self._dtypes = files.dtypes
        os.rename(temporary, self._batch_path(self._written_count))

    def _batch_path(self, index):
        return os.path.join(self._folder, f"batch_{index}")

    def _read_count(self):
        """Returns the number of batches that every reader has read."""
        counts = []
        for name in os.listdir(self._folder):
            if name.startswith("reader_") and name[len("reader_"):].isdigit():
                with open(os.path.join(self._folder, name), encoding="ascii") as file:
                    counts.append(int(file.read()))
        return min(counts) if len(counts) >= self._reader_count else 0

    def _remove_what_was_read(self):
        read_count = self._read_count()
        if read_count <= self._removed_count:
            return
        self._write_number("removed", read_count)
        for index in range(self._removed_count, read_count):
            shutil.rmtree(self._batch_path(index))
            self._budget.release(self._sizes.pop(0))
        self._removed_count = read_count

    def _write_number(self, name, number):
        path = os.path.join(self._folder, name)
        with open(path + ".tmp", "w", encoding="ascii") as file:
            file.write(str(number))
        os.replace(path + ".tmp", path)
