"""Batches that are written while training reads them. Needs NumPy."""

import os
import tempfile
import threading
import unittest

try:
    import numpy as np

    from muster import arrays, data, stream
    from muster.batches import batches_of
    from muster.structure import Structure
except ModuleNotFoundError as error:
    print(f"{error}: the test is skipped. Set MUSTER_KERAS_PYTHON to a Python that has NumPy.")
    raise SystemExit(0)


def batch(value, size=4, width=1):
    return np.full((size, width), value, "float32"), np.full(size, value, "int64")


class StreamTest(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = os.path.join(folder.name, "stream")
        self.parent = folder.name

    def open(self, x, count=1000, reader_count=1, bytes_max=1 << 30):
        schema = data.Schema(Structure(["a"]), ["float32"], Structure(["b"]))
        opened = stream.BatchStream(self.folder, schema, batches_of(x, "x", count), count,
                                    reader_count, arrays.Budget(self.parent, bytes_max))
        opened.write_first()
        return opened

    def read(self, name):
        with open(os.path.join(self.folder, name), encoding="ascii") as file:
            return int(file.read())

    def note_read(self, reader, count):
        path = os.path.join(self.folder, f"reader_{reader}")
        with open(path + ".tmp", "w", encoding="ascii") as file:
            file.write(str(count))
        os.replace(path + ".tmp", path)

    def batches(self):
        return {name for name in os.listdir(self.folder) if name.startswith("batch_")}

    def run_beside(self, opened, limit):
        """Writes batches until two readers have read `limit`.

        Returns the maximum number of batches on disk at one time.
        """
        most = 0
        index = 0

        def is_needed():
            nonlocal most, index
            most = max(most, len(self.batches()))
            if f"batch_{index}" in self.batches():
                values = np.load(os.path.join(self.folder, f"batch_{index}", "array_0.npy"))
                np.testing.assert_array_equal(values, batch(index)[0])
                index += 1
                # The second reader is two batches behind.
                self.note_read(11, index)
                self.note_read(12, max(0, index - 2))
            return index < limit

        opened.write_others(is_needed)
        return most

    def test_the_disk_has_a_bounded_number_of_batches(self):
        drawn = []

        def endless():
            while True:
                drawn.append(len(drawn))
                yield batch(drawn[-1])

        opened = self.open(endless(), count=100000, reader_count=2)
        self.assertEqual(drawn, [0])  # The others are drawn while training reads.
        most = self.run_beside(opened, 300)
        self.assertLessEqual(most, 64)
        self.assertLess(len(drawn), 300 + 70)
        self.assertGreater(self.read("removed"), 200)
        self.assertIn(f"batch_{self.read('end') - 1}", self.batches())

    def test_bytes_are_bounded(self):
        def endless():
            index = 0
            while True:
                yield batch(index)
                index += 1

        byte_count = sum(array.nbytes for array in batch(0))
        opened = self.open(endless(), count=10000, bytes_max=5 * byte_count)
        most = self.run_beside(opened, 50)
        self.assertLessEqual(most, 5)

    def test_a_batch_that_does_not_fit_is_an_error(self):
        with self.assertRaisesRegex(ValueError, "data_bytes_max=10 bytes"):
            self.open(iter([batch(0)]), bytes_max=10)

    def test_nothing_is_removed_before_all_readers_have_begun(self):
        opened = self.open((batch(index) for index in range(1000)), reader_count=2)
        calls = iter(range(2000))

        def is_needed():
            self.note_read(11, len(self.batches()))
            return next(calls) < 100

        opened.write_others(is_needed)
        self.assertEqual(len(self.batches()), 64)
        self.assertFalse(os.path.exists(os.path.join(self.folder, "removed")))

    def test_the_end(self):
        for count, expected in ((2, 2), (10, 3)):
            with self.subTest(count=count):
                opened = self.open(iter([batch(0), batch(1), batch(2, size=3)]), count=count)
                opened.write_others(lambda: True)
                self.assertEqual(self.read("end"), expected)
                opened.remove()
                self.assertFalse(os.path.exists(self.folder))

    def test_errors_of_the_iterator(self):
        def failing():
            yield batch(0)
            yield batch(1)
            raise KeyError("lost")

        opened = self.open(failing())
        with self.assertRaisesRegex(KeyError, "lost"):
            opened.write_others(lambda: True)
        self.assertEqual(self.read("end"), 2)

    def test_the_iterator_runs_in_the_thread_that_calls(self):
        threads = set()

        def batches():
            while True:
                threads.add(threading.get_ident())
                yield batch(0)

        self.open(batches(), count=5).write_others(lambda: True)
        self.assertEqual(threads, {threading.get_ident()})

    def test_batches_that_differ(self):
        for second, message in (
                ((batch(1, size=3), batch(2)), "different sizes, 4 and 3"),
                ((batch(1, size=5),), "different sizes, 4 and 5"),
                ((batch(1, width=2),), r"batch 1 of x has x with rows of \(2,\); expected"),
                ((batch(1) + (np.ones(4),),), "batch 1 of x has x, y, sample_weight; expected"),
        ):
            with self.subTest(message=message):
                opened = self.open(iter((batch(0),) + second))
                with self.assertRaisesRegex(ValueError, message):
                    opened.write_others(lambda: True)
                opened.remove()


if __name__ == "__main__":
    unittest.main()
