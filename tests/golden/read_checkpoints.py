"""Reads Muster's checkpoints with TensorFlow, and TensorFlow's with Muster.

Requires TensorFlow, so it is not part of the build's tests:

    python3 -m venv venv && venv/bin/pip install tensorflow-cpu
    bazel build //tests/golden:write_checkpoints
    venv/bin/python tests/golden/read_checkpoints.py bazel-bin/tests/golden/write_checkpoints

Prints what was read and exits with 0, or with an error at the first difference. Without TensorFlow
it prints a note and exits with 0.
"""

import os
import pathlib
import subprocess
import sys
import tempfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""

import importlib.util

if importlib.util.find_spec("tensorflow") is None:
    print("no TensorFlow here: nothing was read")
    sys.exit(0)

import numpy as np
import tensorflow as tf


def expect(what, actual, wanted):
    actual, wanted = np.asarray(actual), np.asarray(wanted)
    assert actual.shape == wanted.shape and (actual == wanted).all(), (
        f"{what}: {actual} is not {wanted}")
    print(f"  {what}")


def dtypes(prefix):
    reader = tf.train.load_checkpoint(str(prefix))
    count = np.arange(6).reshape(2, 3)
    wanted = {
        "float32": (count / 4, np.float32),
        "float64": (count / 8, np.float64),
        "int32": (count * -7, np.int32),
        "int64": (count << 40, np.int64),
        "uint8": (count * 50, np.uint8),
        "bool": (np.array([True, False]), np.bool_),
        "scalar": (np.array(-2.5), np.float32),
        "empty": (np.zeros((0, 3)), np.float32),
        "bfloat16": (np.full((2, 3), 1.5), tf.bfloat16.as_numpy_dtype),
        "float16": (np.full((2, 3), 2.5), np.float16),
    }
    for name, (values, dtype) in wanted.items():
        tensor = reader.get_tensor(name)
        assert np.asarray(tensor).dtype == dtype, (name, tensor)
        expect(name, tensor, values.astype(dtype))
    expect("string", reader.get_tensor("string"),
           [[b"", b"a"], [b"zero \0 within", b"x" * 300]])
    for i in range(0, 20000, 997):
        assert reader.get_tensor(f"many/variable_{i}") == i
    assert len(tf.train.list_variables(str(prefix))) == 20011
    print("  20,000 scalars")


def partitioned(prefix):
    reader = tf.train.load_checkpoint(str(prefix))
    table = np.arange(28, dtype=np.float32).reshape(7, 4)
    expect("table of three shards", reader.get_tensor("table"), table)
    for shard in range(3):
        expect(f"own_{shard}", reader.get_tensor(f"own_{shard}"), shard)
    for specification, part in {"7 4 0,3:-": table[:3], "7 4 2,4:0,4": table[2:6],
                                "7 4 -:1,2": table[:, 1:3]}.items():
        (restored,) = tf.raw_ops.RestoreV2(
            prefix=str(prefix), tensor_names=["table"],
            shape_and_slices=[specification], dtypes=[tf.float32])
        expect(f"slice {specification}", restored, part)


def objects_of(folder):
    """A checkpoint of objects with the shapes that write_checkpoints.cc saves."""
    model = tf.Module()
    model.dense = tf.Module()
    model.dense.kernel = tf.Variable(tf.zeros((2, 2)), name="dense/kernel")
    model.dense.bias = tf.Variable(tf.zeros(2), name="dense/bias")
    optimizer = tf.compat.v1.train.MomentumOptimizer(0.5, 0.75)
    optimizer.apply_gradients([(tf.zeros((2, 2)), model.dense.kernel)])
    named = {"a.b/c": tf.Variable(0.0), "step": tf.Variable(0, dtype=tf.int64)}
    checkpoint = tf.train.Checkpoint(model=model, optimizer=optimizer, **named)
    manager = tf.train.CheckpointManager(checkpoint, folder, max_to_keep=2)
    return model, optimizer, named, checkpoint, manager


def objects(folder):
    latest = str(folder / "ckpt-3")
    assert tf.train.latest_checkpoint(str(folder)) == latest
    key = "model/dense/kernel/.ATTRIBUTES/VARIABLE_VALUE"
    expect(key, tf.train.load_checkpoint(latest).get_tensor(key),
           [[0, 1], [2, 3]])
    model, optimizer, named, checkpoint, manager = objects_of(folder)
    assert manager.checkpoints == [str(folder / "ckpt-2"), latest]
    checkpoint.restore(latest).assert_consumed()
    expect("model.dense.kernel", model.dense.kernel, [[0, 1], [2, 3]])
    expect("model.dense.bias", model.dense.bias, [0.5, -0.5])
    expect("slot momentum", optimizer.get_slot(model.dense.kernel, "momentum"),
           np.full((2, 2), 9))
    expect("a.b/c", named["a.b/c"], 3)
    expect("step", named["step"], 7)
    expect("save_counter", checkpoint.save_counter, 3)

    _, _, restored, _, manager = objects_of(folder)
    assert manager.restore_or_initialize() == latest
    expect("restore_or_initialize()", restored["step"], 7)
    assert manager.save() == str(folder / "ckpt-4")


def names(folder):
    latest = tf.train.latest_checkpoint(str(folder))
    expect("get_tensor()", tf.train.load_checkpoint(latest).get_tensor("dense/kernel"),
           [[0, 1], [2, 3]])
    model, *_ = objects_of(folder)
    # Without an object graph, TensorFlow uses the names of variables.
    tf.train.Checkpoint(model=model).restore(latest).expect_partial()
    expect("model.dense.kernel", model.dense.kernel, [[0, 1], [2, 3]])
    expect("model.dense.bias", model.dense.bias, [0.5, -0.5])


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    writer = sys.argv[1]
    print(f"TensorFlow {tf.__version__}")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        subprocess.run([writer, name], check=True)
        print("dtypes:")
        dtypes(folder / "dtypes")
        print("partitioned:")
        partitioned(folder / "partitioned")
        print("objects:")
        objects(folder / "objects")
        print("names without objects:")
        names(folder / "names")
        print("Muster, after TensorFlow's manager saved once more:")
        subprocess.run([writer, "--read", str(folder / "objects")], check=True)


if __name__ == "__main__":
    main()
