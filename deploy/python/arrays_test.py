"""Data as .npy files. Needs NumPy."""

import os
import tempfile
import unittest

try:
    import numpy as np

    from muster import arrays, data
except ModuleNotFoundError as error:
    print(f"{error}: the test is skipped. Set MUSTER_KERAS_PYTHON to a Python that has NumPy.")
    raise SystemExit(0)


class ArraysTest(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.schema = data.Schema(["a"], ["float32"], ["b"])
        self.pair = data.Schema(["a1", "a2"], ["float32", "int32"], ["b1", "b2"])

    def write(self, *examples, schema=None):
        return data.write_data(self.folder, "train", schema or self.schema, *examples)

    def load(self, index):
        return np.load(os.path.join(self.folder, "data", f"train_{index}.npy"))

    def test_arrays(self):
        x = np.random.default_rng(0).normal(size=(70, 3))
        written = self.write(x, np.arange(70, dtype="int32"))
        self.assertEqual(written.example_count, 70)
        self.assertIsNone(written.batch_size)
        self.assertEqual(written.source["npy"]["features"], "${job_dir}/data/train_0.npy")
        self.assertEqual(written.source["npy"]["sample_weights"], [])
        np.testing.assert_array_equal(self.load(0), x.astype("float32"))
        self.assertEqual(self.load(1).dtype, "int64")

    def test_lists_and_sample_weights(self):
        written = self.write([[1, 2], [3, 4]], [True, False], [0.5, 2])
        np.testing.assert_array_equal(self.load(0), np.array([[1, 2], [3, 4]], "float32"))
        np.testing.assert_array_equal(self.load(1), np.array([1, 0], "float32"))
        self.assertEqual(written.source["npy"]["sample_weights"],
                         [{"path": "${job_dir}/data/train_2.npy"}])

    def test_arrays_that_are_not_contiguous(self):
        x = np.arange(12.0).reshape(3, 4)
        self.write(np.asfortranarray(x)[:, ::2], [0, 1, 2])
        np.testing.assert_array_equal(self.load(0), x[:, ::2])

    def test_large_arrays_are_copied_in_parts(self):
        x = np.arange(3 * (1 << 21), dtype="float64").reshape(-1, 2) % 1000
        self.write(x, np.zeros(len(x)))
        np.testing.assert_array_equal(self.load(0), x.astype("float32"))

    def test_several_inputs_and_outputs(self):
        source = self.write({"a2": [[1], [2]], "a1": [[0.5], [1.5]]}, [[3, 4], [5.0, 6.0]],
                            {"b1": [1, 2], "b2": [3, 4]}, schema=self.pair).source["npy"]
        self.assertEqual(self.load(0)[0, 0], 0.5)
        self.assertEqual((self.load(1).dtype, self.load(1)[0, 0]), ("int32", 1))
        self.assertEqual([len(source[name]) for name in
                          ("more_features", "more_labels", "sample_weights")], [1, 1, 2])
        self.assertEqual(self.load(5)[1], 4)

    def test_files(self):
        x, y = os.path.join(self.folder, "x.npy"), os.path.join(self.folder, "y.npy")
        np.save(x, np.ones((4, 2)))
        np.save(y, np.zeros(4, "int64"))
        self.assertEqual(self.write(x, y).example_count, 4)
        table = os.path.join(self.folder, "t.csv")
        with open(table, "w", encoding="utf-8") as file:
            file.write("a,kind\n1,0\n2,1\n")
        written = self.write(table, "kind")
        self.assertEqual(written.source, {"csv": {"path": table, "label": "kind"}})
        self.assertEqual(written.example_count, 2)

    def test_batches(self):
        class Sequence:
            """As keras.utils.PyDataset."""

            num_batches = 3

            def __len__(self):
                return 3

            def __getitem__(self, index):
                rows = 4 if index < 2 else 1
                return np.full((rows, 2), index), np.full(rows, index)

        for batches in (Sequence(), iter([Sequence()[index] for index in range(3)])):
            written = self.write(batches)
            self.assertEqual((written.example_count, written.batch_size), (9, 4))
            np.testing.assert_array_equal(self.load(1), [0] * 4 + [1] * 4 + [2])

    def test_mistakes_are_named(self):
        def batches(*sizes):
            return iter([(np.zeros((size, 2)), np.zeros(size)) for size in sizes])

        x = np.zeros((3, 2))
        for message, call in (
                ("x is missing", lambda: self.write(None)),
                ("y is missing", lambda: self.write(x)),
                ("different numbers of rows: .3, 2.", lambda: self.write(x, [1, 2])),
                ("ends in .npy or .csv", lambda: self.write("x.parquet", "y")),
                ("name of its label column", lambda: self.write("x.csv")),
                ("dtype <U1; expected numbers", lambda: self.write(x, ["a", "b", "c"])),
                ("list or a dict with 2 arrays: a1, a2",
                 lambda: self.write(x, x, schema=self.pair)),
                ("names .'a1'.; expected .'a1', 'a2'.",
                 lambda: self.write({"a1": x}, x, schema=self.pair)),
                ("batches of different sizes", lambda: self.write(batches(4, 3, 4))),
                ("batches of different sizes", lambda: self.write(batches(4, 5))),
                ("the train data has no examples", lambda: self.write(iter([]))),
                ("not .x, y. or", lambda: self.write(iter([x]))),
                ("shape .3,.; expected .2,.",
                 lambda: self.write(iter([(x, x[:, 0]), (np.zeros((3, 3)), x[:, 0])]))),
                ("y cannot be given", lambda: self.write(batches(4), x))):
            with self.subTest(message), self.assertRaisesRegex(ValueError, message):
                call()


if __name__ == "__main__":
    unittest.main()
