"""Images per second of a tf.data pipeline: read, decode, resize, scale, batch.

    tf_images.py FOLDER HEIGHT WIDTH THREADS SECONDS

Prints one line of JSON.
"""

import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""

import json
import pathlib
import sys
import time

import tensorflow as tf

BATCH_SIZE = 32
WARM_UP_BATCHES = 4


def main():
    folder, height, width, threads, seconds = sys.argv[1:]
    size, threads = [int(height), int(width)], int(threads)
    tf.config.threading.set_intra_op_parallelism_threads(threads)
    tf.config.threading.set_inter_op_parallelism_threads(threads)
    paths = sorted(str(path) for path in pathlib.Path(folder).glob("*/*.jpg"))

    def load(path):
        image = tf.io.decode_jpeg(tf.io.read_file(path), channels=3)
        return tf.image.resize(image, size) / 255.0

    dataset = (
        tf.data.Dataset.from_tensor_slices(paths)
        .map(load, num_parallel_calls=threads)
        .repeat()
        .batch(BATCH_SIZE)
        .prefetch(2)
    )
    options = tf.data.Options()
    options.threading.private_threadpool_size = threads
    batches = iter(dataset.with_options(options))
    for _ in range(WARM_UP_BATCHES):
        next(batches)
    begin = time.perf_counter()
    count = 0
    while time.perf_counter() - begin < float(seconds):
        next(batches)
        count += BATCH_SIZE
    rate = count / (time.perf_counter() - begin)
    print(json.dumps({"images_per_s": round(rate, 1), "threads": threads}))


if __name__ == "__main__":
    main()
