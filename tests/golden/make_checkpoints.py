"""Writes checkpoints/: what TensorFlow saves, for Muster's reader to match.

The files there were made with TensorFlow 2.21.0 on Python 3.11, whose licence is
Apache 2.0; they hold no code of it, only the numbers below. Other versions are
refused, as in make_golden.py.

    python3 -m venv venv && venv/bin/pip install tensorflow-cpu==2.21.0
    venv/bin/python make_checkpoints.py

    dtypes          a tensor of each dtype, a scalar, an empty one, an int8
    partitioned     two shards; "table" cut by rows over both, "grid" by columns
    objects/        tf.train.CheckpointManager over objects, with a slot variable
"""

import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""

import pathlib
import shutil
import sys

import numpy as np
import tensorflow as tf

VERSION = "2.21.0"
FOLDER = pathlib.Path(__file__).parent / "checkpoints"


def save(prefix, tensors):
    """tensors: {name: tensor} or {name: (tensor, slice specification)}."""
    values = [v if isinstance(v, tuple) else (v, "") for v in tensors.values()]
    tf.raw_ops.SaveV2(
        prefix=str(prefix),
        tensor_names=list(tensors),
        shape_and_slices=[specification for _, specification in values],
        tensors=[tf.convert_to_tensor(value) for value, _ in values])


def dtypes():
    count = np.arange(6).reshape(2, 3)
    save(FOLDER / "dtypes", {
        "float32": (count / 4).astype(np.float32),
        "float64": (count / 8).astype(np.float64),
        "bfloat16": tf.cast(count / 2, tf.bfloat16),
        "float16": (count / 2).astype(np.float16),
        "int32": (count - 3).astype(np.int32),
        "int64": (count - 3).astype(np.int64) << 40,
        "uint8": (count * 50).astype(np.uint8),
        "bool": count % 2 == 1,
        "string": np.array([["", "a"], ["zero \0 within", "x" * 300]]),
        "scalar": np.float32(-2.5),
        "empty": np.zeros((0, 3), np.float32),
        "int8": count.astype(np.int8),
    })


def partitioned():
    table = np.arange(28, dtype=np.float32).reshape(7, 4)
    grid = np.arange(15, dtype=np.int32).reshape(3, 5)
    parts = [FOLDER / "part_0", FOLDER / "part_1"]
    save(parts[0], {"table": (table[:3], "7 4 0,3:-"),
                    "grid": (grid[:, :2], "3 5 -:0,2"),
                    "only_in_0": np.int64(10)})
    save(parts[1], {"table": (table[3:], "7 4 3,4:0,4"),
                    "grid": (grid[:, 2:], "3 5 0,3:2,3"),
                    "only_in_1": np.array(["eleven"])})
    tf.raw_ops.MergeV2Checkpoints(
        checkpoint_prefixes=[str(part) for part in parts],
        destination_prefix=str(FOLDER / "partitioned"), delete_old_dirs=False)


def objects():
    model = tf.Module()
    model.dense = tf.Module()
    model.dense.kernel = tf.Variable([[1.0, 2.0], [3.0, 4.0]], name="dense/kernel")
    model.dense.bias = tf.Variable([0.5, -0.5], name="dense/bias")
    optimizer = tf.compat.v1.train.MomentumOptimizer(0.5, 0.75)
    named = {"a.b/c": tf.Variable(3.0), "step": tf.Variable(7, dtype=tf.int64)}
    checkpoint = tf.train.Checkpoint(model=model, optimizer=optimizer, **named)
    manager = tf.train.CheckpointManager(checkpoint, FOLDER / "objects", max_to_keep=2)
    for _ in range(3):
        optimizer.apply_gradients([(tf.ones((2, 2)), model.dense.kernel)])
        manager.save()


def main():
    if tf.__version__ != VERSION:
        sys.exit(f"make_checkpoints.py wants TensorFlow {VERSION}, found {tf.__version__}")
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir()
    dtypes()
    partitioned()
    objects()
    for path in sorted(FOLDER.rglob("*")):
        if path.is_file():
            print(path.relative_to(FOLDER), path.stat().st_size)


if __name__ == "__main__":
    main()
