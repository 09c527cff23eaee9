"""Data as .npy files. Needs NumPy; some tests also need pandas or TensorFlow."""

import os
import tempfile
import unittest

try:
    import numpy as np

    from muster import arrays, columns, data, job
    from muster.structure import Structure
except ModuleNotFoundError as error:
    print(f"{error}: the test is skipped. Set MUSTER_KERAS_PYTHON to a Python that has NumPy.")
    raise SystemExit(0)


def schema_of(inputs, dtypes, outputs, shapes=None):
    return data.Schema(Structure(inputs), dtypes, Structure(outputs), shapes)


class ArraysTest(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.schema = schema_of(["a"], ["float32"], ["b"])
        self.pair = schema_of(["a1", "a2"], ["float32", "int32"], ["b1", "b2"])

    def write_both(self, *examples, schema=None, bytes_max=None, **arguments):
        """Returns (train, validation)."""
        schema = schema or self.schema
        return data.write_train(data.DataWriter(self.folder, schema, bytes_max), schema,
                                job.normalized(job.Arguments(**arguments)), *examples)

    def write(self, *examples, **arguments):
        return self.write_both(*examples, **arguments)[0]

    def validate(self, validation_data, **arguments):
        return data.write_validation(data.DataWriter(self.folder, self.schema), self.schema,
                                     job.normalized(job.Arguments(**arguments)), validation_data)

    def load(self, index, prefix="train"):
        return np.load(os.path.join(self.folder, "data", f"{prefix}_{index}.npy"))

    def test_arrays(self):
        x = np.random.default_rng(0).normal(size=(70, 3))
        written = self.write(x, np.arange(70, dtype="int32"))
        self.assertEqual(written.example_count, 70)
        self.assertEqual(written.batch_size, 32)
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
            """Has the interface of keras.utils.PyDataset."""

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

    def test_batches_are_drawn_as_needed(self):
        drawn = []

        def endless():
            while True:
                drawn.append(1)
                yield np.zeros((4, 2)), np.zeros(4)

        written = self.write(endless(), steps_per_epoch=5, epochs=4, initial_epoch=1)
        self.assertEqual((written.example_count, len(drawn)), (60, 15))
        drawn.clear()
        self.assertEqual(self.validate(endless(), validation_steps=2).example_count, 8)
        self.assertEqual(len(drawn), 2)

        class Endless:
            """Has the interface of keras.utils.PyDataset."""

            num_batches = None

            def __getitem__(self, index):
                return np.full((4, 2), index), np.full(4, index)

        self.assertEqual(self.write(Endless(), steps_per_epoch=2, epochs=2).example_count, 16)
        np.testing.assert_array_equal(self.load(1), np.repeat([0, 1, 2, 3], 4))
        with self.assertRaisesRegex(ValueError, "x is a Endless without end; pass the number"):
            self.write(Endless())

    def test_the_disk_budget_is_kept(self):
        def endless():
            while True:
                yield np.zeros((100, 2), "float32"), np.zeros(100, "float32")

        with self.assertRaisesRegex(ValueError, "needs more than data_bytes_max=100000 bytes in "
                                    ".*pass steps_per_epoch for data without end"):
            self.write(endless(), bytes_max=100_000)
        folder = os.path.join(self.folder, "data")
        written = sum(os.path.getsize(os.path.join(folder, name)) for name in os.listdir(folder))
        self.assertLess(written, 101_000)
        budget = arrays.Budget(self.folder)
        with self.assertRaisesRegex(ValueError, "half of what was free there"):
            budget.spend(1 << 60)

    def test_sizes_of_batches_are_those_of_keras(self):
        x, y = np.zeros((70, 2)), np.zeros(70)
        self.assertEqual(self.write(x, y, steps_per_epoch=4).batch_size, 18)
        self.assertEqual(self.write(x, y, steps_per_epoch=4, batch_size=8).batch_size, 8)
        for arguments, rows in (({}, 70), ({"validation_steps": 3}, 70),
                                ({"validation_steps": 3, "batch_size": 8}, 24),
                                ({"validation_steps": 3, "batch_size": 8,
                                  "validation_batch_size": 5}, 15),
                                ({"validation_steps": 9, "batch_size": 32}, 70)):
            self.assertEqual(self.validate((x, y), **arguments).example_count, rows, arguments)
        # Validation accepts batches of any size, because the result does not depend on it.
        sizes = [7, 3, 5]
        batches = iter([(np.zeros((size, 2)), np.zeros(size)) for size in sizes])
        self.assertEqual(self.validate(batches).example_count, 15)

    def test_validation_split_divides_in_its_own_arithmetic(self):
        x = np.arange(10.0)[:, np.newaxis]
        y = np.arange(10)
        for split, train_count in ((0.2, 8), (np.float32(0.2), 8), (np.float64(0.3), 7),
                                   (np.float32(0.3), 7), (np.float16(0.1), 9)):
            train, validation = self.write_both(x, y, validation_split=split)
            self.assertEqual(train_count, int(np.floor(10 * (1.0 - split))))
            self.assertEqual((train.example_count, validation.example_count),
                             (train_count, 10 - train_count), split)
            np.testing.assert_array_equal(self.load(1, "validation"), y[train_count:])
        with self.assertRaisesRegex(ValueError, "validation_split=0.5 leaves 0 of 1 examples"):
            self.write(x[:1], y[:1], validation_split=0.5)

    def test_strings(self):
        schema = schema_of(["a"], ["string"], ["b"], [(None, 1)])
        words = [["north"], ["süd"], [""]]
        for x in (np.array(words), np.array(words, dtype=object), words,
                  np.array([["north"], ["süd".encode()], [b""]], dtype=object)):
            self.write(x, [1, 2, 3], schema=schema)
            self.assertEqual(self.load(0).tolist(), [[b"north"], ["süd".encode()], [b""]])
        # A column has one extent less.
        self.write(np.array(["a", "b"]), [1, 2], schema=schema)
        self.assertEqual(self.load(0).tolist(), [[b"a"], [b"b"]])
        batches = iter([(np.array([["a"]]), [1]), (np.array([["a longer one"]]), [2])])
        self.write(batches, schema=schema)
        self.assertEqual(self.load(0).tolist(), [[b"a"], [b"a longer one"]])

    def test_extents_of_1_are_added_and_dropped(self):
        for shape, rows in (((None, 1), (3,)), ((None,), (3, 1)), ((None, 2, 1), (3, 2))):
            self.write(np.zeros(rows), [0, 1, 2],
                       schema=schema_of(["a"], ["float32"], ["b"], [shape]))
            self.assertEqual(self.load(0).shape, (3,) + shape[1:])

    def test_structures(self):
        x1, x2 = np.zeros((2, 1)), np.ones((2, 1))
        nested = Structure(["p", "q", "r"], {"left": 0, "right": [1, 2]})
        for value in ({"left": "a", "right": ("b", "c")}, ["a", ["b", "c"]],
                      {"p": "a", "q": "b", "r": "c"}):
            self.assertEqual(nested.arrange(value, "x"), ["a", "b", "c"])
        keyed = Structure(["p", "q"], {"b": 0, "a": 1})
        self.assertEqual(keyed.arrange({"a": 1, "b": 2}, "x"), [2, 1])
        with self.assertWarnsRegex(UserWarning, "x has 'more', which the model does not take"):
            self.assertEqual(keyed.arrange({"a": 1, "b": 2, "more": 3}, "x"), [2, 1])
        with self.assertRaisesRegex(ValueError, r"x has the names \['a'\]; expected "
                                    r"\{'b': p, 'a': q\}"):
            keyed.arrange({"a": 1}, "x")
        with self.assertRaisesRegex(ValueError, r"x is a list of 3; expected \[a1, a2\]"):
            self.pair.inputs.arrange([x1, x2, x1], "x")
        self.assertIs(self.schema.inputs.arrange([x1], "x")[0], x1)

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
                ("y has strings; the model takes numbers there",
                 lambda: self.write(x, ["a", "b", "c"])),
                ("x has numbers; the model takes strings there",
                 lambda: self.write(x, [1, 2, 3], schema=schema_of(["a"], ["string"], ["b"]))),
                ("x has objects that are neither",
                 lambda: self.write(np.array([[1], [None]]), [1, 2])),
                ("x has a int; expected strings",
                 lambda: self.write(np.array([["a"], [1]], dtype=object), [1, 2])),
                ("x has the dtype datetime64.*expected numbers or strings",
                 lambda: self.write(np.zeros(2, "datetime64[s]"), [1, 2])),
                ("x is a ndarray; expected .a1, a2.", lambda: self.write(x, x, schema=self.pair)),
                ("names .'a1'.; expected .a1, a2.",
                 lambda: self.write({"a1": x}, x, schema=self.pair)),
                ("batches of different sizes, 4, 3, 4", lambda: self.write(batches(4, 3, 4))),
                ("batches of different sizes, 4, 5", lambda: self.write(batches(4, 5))),
                ("the train data has no examples", lambda: self.write(iter([]))),
                ("x yields a ndarray of 3; expected", lambda: self.write(iter([x]))),
                ("shape .3,.; expected .2,.",
                 lambda: self.write(iter([(x, x[:, 0]), (np.zeros((3, 3)), x[:, 0])]))),
                ("y cannot be given", lambda: self.write(batches(4), x)),
                ("validation_split is for arrays",
                 lambda: self.write(batches(4), validation_split=0.5)),
                ("class_weight and sample_weight",
                 lambda: self.write(x, [1, 2, 3], [1, 1, 1], class_weight={0: 1})),
                ("class_weight is for models with one output",
                 lambda: self.write(x, x, schema=self.pair, class_weight={0: 1})),
                ("validation_data has 1 parts", lambda: self.validate((x,)))):
            with self.subTest(message), self.assertRaisesRegex(ValueError, message):
                call()


class ColumnsTest(unittest.TestCase):
    """Tests every kind of column that pandas has."""

    def setUp(self):
        try:
            import pandas
        except ModuleNotFoundError:
            self.skipTest("there is no pandas")
        self.pandas = pandas

    def test_numbers(self):
        pd = self.pandas
        frame = pd.DataFrame({
            "int": [1, 2], "bool": [True, False], "uint8": np.array([1, 2], "uint8"),
            "float": [0.5, 1.5], "Int64": pd.array([1, None], dtype="Int64"),
            "Float32": pd.array([1.5, None], dtype="Float32"),
            "boolean": pd.array([True, False], dtype="boolean"),
            "category": pd.Categorical([3, 4]), "sparse": pd.arrays.SparseArray([0, 1]),
            "object": pd.Series([1, 2.5], dtype=object),
        })
        np.testing.assert_array_equal(
            columns.of_frame(frame, "x"),
            [[1, 1, 1, 0.5, 1, 1.5, 1, 3, 0, 1], [2, 0, 2, 1.5, np.nan, np.nan, 0, 4, 1, 2.5]])
        self.assertEqual(arrays.as_array(frame["int"], "x").shape, (2, 1))

    def test_strings(self):
        pd = self.pandas
        for dtype in ("object", "string", "category"):
            series = pd.Series(["a", "é"], dtype=dtype)
            self.assertEqual(arrays.as_array(series, "x").tolist(), [[b"a"], ["é".encode()]])
        frame = pd.DataFrame({"p": ["a", "b"], "q": ["c", "d"]})
        self.assertEqual(arrays.as_array(frame, "x").tolist(), [[b"a", b"c"], [b"b", b"d"]])

    def test_others_are_named(self):
        pd = self.pandas
        for message, values in (
                ("has dates", pd.date_range("2020", periods=2)),
                ("has durations", pd.to_timedelta([1, 2])),
                ("dtype period", pd.period_range("2020", periods=2)),
                ("dtype interval", pd.interval_range(0, 2)),
                ("has complex numbers", [1j, 2]),
                ("no string in row 1", ["a", None]),
                ("strings and other values", pd.Series(["a", 1], dtype=object)),
                ("no numbers", pd.Series([object(), 1]))):
            frame = pd.DataFrame({"first": [1, 2], "second": values})
            with self.assertRaisesRegex(ValueError, f"x, column 'second',? .*{message}"):
                columns.of_frame(frame, "x")
        with self.assertRaisesRegex(ValueError, "'second', has strings, and other columns have"):
            columns.of_frame(pd.DataFrame({"first": [1], "second": ["a"]}), "x")


if __name__ == "__main__":
    unittest.main()
