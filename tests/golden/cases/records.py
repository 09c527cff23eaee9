"""records.json: TFRecord files written by TensorFlow, and examples that it parses.

config:  "op": tfrecord with "compression" and "content" (the file) and "records" (each
         record), or parse_example with "content" (the serialized tf.train.Example) and
         "features": key -> {"dtype", "shape" [, "default"]}; bytes are hexadecimal
outputs: of parse_example: key -> the result of tf.io.parse_single_example; strings are
         lists of hexadecimal
"""

import pathlib
import tempfile

import numpy as np
import tensorflow as tf

from cases.golden_format import case


def cases():
    records = [b"", b"one", bytes(range(256)), b"\0" * 40]
    for compression in ("", "GZIP", "ZLIB"):
        yield _file(compression, records)
    yield from _examples()


def _file(compression, records):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "file"
        with tf.io.TFRecordWriter(str(path), compression) as writer:
            for record in records:
                writer.write(record)
        content = path.read_bytes()
    config = {
        "op": "tfrecord",
        "compression": compression,
        "content": content.hex(),
        "records": [record.hex() for record in records],
    }
    return case(f"tfrecord/{compression or 'plain'}", config, {}, {})


def _feature(**lists):
    (kind, values), = lists.items()
    message = {
        "bytes_list": tf.train.BytesList,
        "float_list": tf.train.FloatList,
        "int64_list": tf.train.Int64List,
    }[kind]
    return tf.train.Feature(**{kind: message(value=values)})


def _example(**features):
    return tf.train.Example(features=tf.train.Features(feature=features))


def _parse(name, example, features):
    content = example.SerializeToString(deterministic=True)
    spec = {
        key: tf.io.FixedLenFeature(
            one["shape"], getattr(tf, one["dtype"]), one.get("default")
        )
        for key, one in features.items()
    }
    outputs = {}
    for key, value in tf.io.parse_single_example(content, spec).items():
        array = value.numpy()
        if value.dtype == tf.string:
            outputs[key] = [item.hex() for item in np.asarray(array).ravel().tolist()]
        else:
            outputs[key] = np.asarray(array)
    config = {"op": "parse_example", "content": content.hex(), "features": features}
    return case(f"parse_example/{name}", config, {}, outputs)


def _examples():
    example = _example(
        image=_feature(bytes_list=[b"\xff\xd8\xff\0abc"]),
        label=_feature(int64_list=[7]),
        box=_feature(float_list=[0.25, -1.5, 3e20, 1e-30]),
        negative=_feature(int64_list=[-1, -(2**63), 2**63 - 1]),
        words=_feature(bytes_list=[b"a", b"", b"\xc3\xa4"]),
    )
    yield _parse(
        "all_kinds",
        example,
        {
            "image": {"dtype": "string", "shape": []},
            "label": {"dtype": "int64", "shape": []},
            "box": {"dtype": "float32", "shape": [2, 2]},
            "negative": {"dtype": "int64", "shape": [3]},
            "words": {"dtype": "string", "shape": [3]},
        },
    )
    yield _parse(
        "defaults",
        _example(label=_feature(int64_list=[7])),
        {
            "label": {"dtype": "int64", "shape": [], "default": 3},
            "weight": {"dtype": "float32", "shape": [], "default": 0.5},
            "ids": {"dtype": "int64", "shape": [2], "default": [4, 5]},
        },
    )
