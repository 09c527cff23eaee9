#!/usr/bin/env python3
"""Measures the time that muster.fit() takes longer than `launch` with the same job.

    bazel build //coordinator //deploy/launch //ps //worker
    bench/python_benchmark.py --python=VENV/bin/python [--realtime]

An MLP of 784-256-256-10 on 60,000 random images, batch 128, two epochs on one process, on
two synchronous workers, and on two workers with two parameter servers. fit() and launch run
alternately. Prints medians of both, and of the difference. The figures include the start of
the cluster. fit() also writes the model and the data, and reads the result.
"""

import argparse
import contextlib
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
CLUSTERS = {
    "one process": {},
    "2 workers": {"workers": 2},
    "2 workers, 2 servers": {"workers": 2, "ps": 2},
}


def seconds_of(action):
    begin = time.perf_counter()
    action()
    return time.perf_counter() - begin


def measure(rounds):
    import keras
    import numpy

    import muster

    generator = numpy.random.default_rng(1)
    x = generator.random((60_000, 784), dtype=numpy.float32)
    y = generator.integers(0, 10, 60_000)
    model = keras.Sequential([keras.Input((784,)), keras.layers.Dense(256, "relu"),
                              keras.layers.Dense(256, "relu"), keras.layers.Dense(10)])
    model.compile(keras.optimizers.SGD(0.01),
                  keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    launch = str(pathlib.Path(os.environ["MUSTER_BIN"]) / "deploy/launch/launch")
    for name, cluster in CLUSTERS.items():
        settings = {"batch_size": 128, "epochs": 2, "verbose": 0, **cluster}
        with tempfile.TemporaryDirectory() as folder:
            with contextlib.redirect_stdout(None):
                job = muster.write_job(model, x, y, folder=folder + "/job", **settings)
            command = [launch, f"--job={job}", f"--workers={cluster.get('workers', 0)}",
                       f"--ps={cluster.get('ps', 0)}"]
            fits, launches = [], []
            for number in range(rounds):
                fits.append(seconds_of(lambda: muster.fit(model, x, y, **settings)))
                run = [*command, f"--run_dir={folder}/{number}"]
                launches.append(seconds_of(lambda: subprocess.run(
                    run, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)))
        added = [fit - alone for fit, alone in zip(fits, launches)]
        print(f"{name:22} fit {statistics.median(fits):6.2f} s"
              f"  launch {statistics.median(launches):6.2f} s"
              f"  added {statistics.median(added):6.2f} s"
              f"  ({min(added):.2f} to {max(added):.2f})", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", default=sys.executable, help="one that has Keras")
    parser.add_argument("--bin_dir", default=str(ROOT / "bazel-bin"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--realtime", action="store_true")
    parser.add_argument("--inner", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.inner:
        measure(arguments.rounds)
        return
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "deploy/python"),
                   "TF_CPP_MIN_LOG_LEVEL": "3",
                   "MUSTER_BIN": str(pathlib.Path(arguments.bin_dir).resolve())}
    prefix = ["chrt", "--rr", "20"] if arguments.realtime else []
    subprocess.run([*prefix, arguments.python, __file__, "--inner",
                    f"--rounds={arguments.rounds}"], check=True, env=environment)


if __name__ == "__main__":
    main()
