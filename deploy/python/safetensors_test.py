"""Files of safetensors. Needs NumPy and ml_dtypes; compares with the package safetensors if it is
installed."""

import importlib.util
import json
import os
import struct
import tempfile
import unittest

try:
    import ml_dtypes
    import numpy as np
except ModuleNotFoundError as error:
    print(f"{error}: the test is skipped. Set MUSTER_KERAS_PYTHON to a Python with Keras.")
    raise SystemExit(0)

from muster import safetensors_file

# {"b": int32 [1, -2], "a": bfloat16 [[0.5]]}, as the package safetensors 0.8.0 writes it.
GOLDEN = bytes.fromhex(
    "70000000000000007b2262223a7b226474797065223a22493332222c227368617065223a5b325d2c"
    "22646174615f6f666673657473223a5b302c385d7d2c2261223a7b226474797065223a2242463136"
    "222c227368617065223a5b312c315d2c22646174615f6f666673657473223a5b382c31305d7d7d20"
    "01000000feffffff003f")


def tensors():
    generator = np.random.default_rng(5)
    made = {"scalar": np.float64(0.1).reshape(()), "empty": np.zeros((0, 3), "float32"),
            "turned": generator.normal(size=(3, 5)).astype("float32").T,
            "big": np.arange(3, dtype=">i4"), "Ärger/kernel": np.ones((2, 1, 2), "int8"),
            "nan": np.array([np.nan, -0.0, np.inf], "float16")}
    for name in ("float64", "float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"):
        made[name] = generator.normal(size=(7, 3)).astype(safetensors_file.dtype_named(name))
    for name in ("int64", "int32", "int16", "int8", "uint64", "uint32", "uint16", "uint8", "bool",
                 "complex64"):
        made[name] = generator.integers(0, 100, size=11).astype(name)
    return made


class SafetensorsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = os.path.join(folder.name, "x.safetensors")

    def assert_same(self, found, wanted):
        self.assertEqual(found.keys(), wanted.keys())
        for name, array in wanted.items():
            self.assertEqual(found[name].dtype.name, array.dtype.name, name)
            self.assertEqual(found[name].shape, array.shape, name)
            self.assertEqual(found[name].tobytes(),
                             array.astype(array.dtype.newbyteorder("<")).tobytes(), name)

    def write_header(self, header, data=b"", length=None):
        text = header if isinstance(header, bytes) else json.dumps(header).encode()
        with open(self.path, "wb") as file:
            file.write(struct.pack("<Q", len(text) if length is None else length) + text + data)

    def test_reads_what_it_has_written(self):
        safetensors_file.write(self.path, tensors())
        self.assert_same(safetensors_file.read(self.path), tensors())
        self.assertEqual(os.listdir(os.path.dirname(self.path)), ["x.safetensors"])

    def test_the_bytes_are_those_of_the_package(self):
        wanted = {"b": np.array([1, -2], "int32"), "a": np.array([[0.5]], ml_dtypes.bfloat16)}
        safetensors_file.write(self.path, wanted)
        with open(self.path, "rb") as file:
            self.assertEqual(file.read(), GOLDEN)
        self.assert_same(safetensors_file.read(self.path), wanted)

    @unittest.skipIf(importlib.util.find_spec("safetensors") is None, "no package safetensors")
    def test_the_package_reads_and_writes_the_same(self):
        import safetensors.numpy

        wanted = {name: np.array(array, order="C") for name, array in tensors().items()}
        safetensors_file.write(self.path, wanted)
        with open(self.path, "rb") as file:
            read = dict(safetensors.deserialize(file.read()))
        self.assertEqual(read.keys(), wanted.keys())
        for name, array in wanted.items():
            self.assertEqual(tuple(read[name]["shape"]), array.shape, name)
            self.assertEqual(bytes(read[name]["data"]),
                             array.astype(array.dtype.newbyteorder("<")).tobytes(), name)
        # It has no 8-bit floating-point numbers of NumPy.
        wanted = {name: array for name, array in wanted.items() if "float8" not in name}
        safetensors.numpy.save_file(wanted, self.path, metadata={"format": "np"})
        self.assert_same(safetensors_file.read(self.path), wanted)

    def test_damaged_files_are_refused(self):
        f32 = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}
        for header, data, message in (
                ({"a": {**f32, "dtype": "F31"}}, b"x" * 8, "dtype 'F31'; expected one of"),
                ({"a": {**f32, "shape": [3]}}, b"x" * 8, "expected 12 bytes"),
                ({"a": {**f32, "shape": [-2]}}, b"x" * 8, r"shape \[-2\]; expected a list"),
                ({"a": {**f32, "shape": [True, 2]}}, b"x" * 8, "shape .True, 2.; expected a list"),
                ({"a": {**f32, "shape": [1 << 62, 1 << 62]}}, b"x" * 8, "expected 8507"),
                ({"a": {**f32, "data_offsets": [8, 0]}}, b"x" * 8, "expected 8 bytes"),
                ({"a": {**f32, "data_offsets": [0]}}, b"x" * 8, "expected two numbers"),
                ({"a": {**f32, "data_offsets": [8, 16]}}, b"x" * 16, "begins at 8; expected 0"),
                ({"a": f32, "b": f32}, b"x" * 8, "the tensor b begins at 0; expected 8"),
                ({"a": f32}, b"x" * 7, "expected .* from its header"),
                ({"a": f32}, b"x" * 9, "expected .* from its header"),
                ({"a": 3}, b"", "the tensor a is 3"),
                ([], b"", "no object of JSON"),
                (b"{", b"", "no JSON"),
                (b"\xff\xff", b"", "no JSON"),
                (b"[" * 100000, b"", "no JSON"),
                (b'{"a": {}, "a": {}}', b"", "occurs twice")):
            with self.subTest(message):
                self.write_header(header, data)
                with self.assertRaisesRegex(ValueError, f"x.safetensors is no file of .*{message}"):
                    safetensors_file.read(self.path)
        for length in (3, 1 << 63):
            self.write_header(b"{}", length=length)
            with self.assertRaisesRegex(ValueError, f"its header has {length} bytes; expected"):
                safetensors_file.read(self.path)
        with open(self.path, "wb") as file:
            file.write(b"short")
        with self.assertRaisesRegex(ValueError, "it has 5 bytes; expected at least 8"):
            safetensors_file.read(self.path)

    def test_what_the_format_lacks_is_named(self):
        for made, message in (({"a": np.zeros(2, "complex128")}, "tensor a has dtype complex128"),
                              ({"__metadata__": np.zeros(2)}, "called '__metadata__'")):
            with self.subTest(message), self.assertRaisesRegex(ValueError, message):
                safetensors_file.write(self.path, made)


if __name__ == "__main__":
    unittest.main()
