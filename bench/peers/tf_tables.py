"""Rows per second of tf.data: reading CSV files, and looking up words.

  tf_tables.py csv FILE SECONDS                 lines in batches, decoded together
  tf_tables.py records FILE SECONDS             CsvDataset, record by record
  tf_tables.py lookup WORDS VOCABULARY SECONDS  keras.layers.StringLookup

The files are those of table_benchmark.cc. Prints one line of JSON.
"""

import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""

import json
import pathlib
import sys
import time

import keras
import tensorflow as tf

BATCH_SIZE = 256
LOOKUP_BATCH_SIZE = 4096
WARM_UP_BATCHES = 20
DEFAULTS = [0.0] * 6 + [""] * 4 + [tf.constant(0, tf.int64)]


def decoded_lines(path):
    def decode(lines):
        return tf.io.decode_csv(lines, DEFAULTS)

    lines = tf.data.TextLineDataset(path).skip(1).repeat().batch(BATCH_SIZE)
    return lines.map(decode, num_parallel_calls=tf.data.AUTOTUNE).prefetch(2)


def records(path):
    dataset = tf.data.experimental.CsvDataset(path, DEFAULTS, header=True)
    return dataset.repeat().batch(BATCH_SIZE).prefetch(2)


def lookup(words, vocabulary):
    layer = keras.layers.StringLookup(vocabulary=pathlib.Path(vocabulary).read_text().split())
    dataset = tf.data.Dataset.from_tensor_slices(pathlib.Path(words).read_text().split())
    batches = dataset.batch(LOOKUP_BATCH_SIZE, drop_remainder=True).cache().repeat()
    return batches.map(lambda batch: [layer(batch)]).prefetch(2)


DATASETS = {"csv": decoded_lines, "records": records, "lookup": lookup}


def main():
    mode, *files, seconds = sys.argv[1:]
    options = tf.data.Options()
    # Muster is deterministic as well.
    options.deterministic = True
    batches = iter(DATASETS[mode](*files).with_options(options))
    for _ in range(WARM_UP_BATCHES):
        next(batches)
    begin = time.perf_counter()
    count, passed = 0, 0
    while passed < float(seconds):
        count += int(next(batches)[0].shape[0])
        passed = time.perf_counter() - begin
    print(json.dumps({"rows_per_s": round(count / passed)}))


if __name__ == "__main__":
    main()
