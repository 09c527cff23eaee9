#!/usr/bin/env python3
"""Measures evaluation with parameter servers: on two workers with a core each,
compared with the coordinator alone on one core. The workers read batches in shared
memory or receive them over gRPC, without and with certificates (mTLS).

  bazel build //coordinator //deploy/launch //ps //worker
  bench/evaluation_benchmark.py [--launches=3] [--model=MLP]

Prints the median time of one evaluation for each, and how much faster than the
coordinator it is, for a small and a large model. Needs two cores, uses loopback only, and
leaves no processes.
"""

import argparse
import os
import pathlib
import re
import signal
import statistics
import subprocess
import tempfile
import time

BIN_DIR = pathlib.Path(__file__).resolve().parent.parent / "bazel-bin"
TIMEOUT_S = 300
EPOCHS = 8

MODELS = {
    "MLP 784-256-256-10, 10,000 examples, batch 128": dict(
        examples=10000, features=784, batch=128, layers="""
  layers { dense { units: 256 activation: RELU } }
  layers { dense { units: 256 activation: RELU } }
  layers { dense { units: 10 } }"""),
    "MobileNetV2 224x224, 256 examples, batch 16": dict(
        examples=256, features=224 * 224 * 3, batch=16, layers="""
  layers { reshape { target_shape: 224 target_shape: 224 target_shape: 3 } }
  layers { model { application { mobilenet_v2 {
    input_shape: 224 input_shape: 224 input_shape: 3 classes: 10
    classifier_activation: LINEAR
  } } } }"""),
}

# Flags of launch; the coordinator alone comes first.
ALONE = "coordinator alone"
WAYS = {
    ALONE: [],
    "workers, shared memory": [],
    "workers, gRPC": ["--noshared_memory"],
    "workers, mTLS, shared memory": ["--tls=auto"],
    "workers, mTLS, gRPC": ["--tls=auto", "--noshared_memory"],
}

# One training step per epoch, so that the time of an epoch is that of an
# evaluation.
JOB = """
model {{ sequential {{ {layers}
}} }}
train {{ synthetic {{ example_count: {batch} feature_count: {features}
                     class_count: 10 }} repeat: true }}
validation {{ synthetic {{ example_count: {examples} feature_count: {features}
                          class_count: 10 }} cache: true }}
batch_size: {batch}
epochs: {epochs}
steps_per_epoch: 1
validation_freq: {frequency}
optimizer {{ sgd {{ learning_rate: 0.001 }} }}
loss {{ sparse_categorical_crossentropy {{ from_logits: true }} }}
metrics {{ sparse_categorical_accuracy {{}} }}
strategy {{ parameter_server {{ evaluates_on_coordinator: {alone} }} }}
"""


def write_pinned(folder):
    """Writes executables pinned to one core: worker i on core i, all others on core 0."""
    pinned = folder / "bin"
    pinned.mkdir()
    for role in ("coordinator", "worker", "ps"):
        script = pinned / role
        core = ("$(printf %s \"$TF_CONFIG\" |"
                " sed -n 's/.*\"index\": *\\([0-9]*\\).*/\\1/p')"
                if role == "worker" else "0")
        script.write_text(f"#!/bin/sh\nexec taskset -c {core} "
                          f"'{BIN_DIR}/{role}/{role}' \"$@\"\n",
                          encoding="utf-8")
        script.chmod(0o755)
    return pinned


def epoch_seconds(model, way, frequency):
    """Returns the median time from one epoch's line to the next."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        job = folder / "bench.job"
        job.write_text(JOB.format(epochs=EPOCHS, frequency=frequency,
                                  alone=str(way == ALONE).lower(), **model),
                       encoding="utf-8")
        process = subprocess.Popen(
            [BIN_DIR / "deploy/launch/launch", "--workers=2", "--ps=1",
             f"--bin_dir={write_pinned(folder)}", f"--job={job}",
             f"--run_dir={folder}/run"] + WAYS[way],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        at_s, lines = [], []
        try:
            begin_s = time.monotonic()
            for line in process.stdout:
                lines.append(line)
                if re.search(r"^chief +\| 1/1 ", line):
                    at_s.append(time.monotonic())
                if time.monotonic() - begin_s > TIMEOUT_S:
                    raise TimeoutError("".join(lines[-10:]))
            if process.wait(timeout=30) != 0:
                raise RuntimeError("".join(lines[-20:]))
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
                process.wait(timeout=30)
        # The first evaluation compiles and fills the caches.
        return statistics.median(
            b - a for a, b in zip(at_s[1:], at_s[2:]))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--launches", type=int, default=3)
    parser.add_argument("--model", default="", help="what its title begins with")
    arguments = parser.parse_args()
    if (os.cpu_count() or 1) < 2:
        raise SystemExit("needs two cores")
    for title, model in MODELS.items():
        if not title.startswith(arguments.model):
            continue
        seconds = {way: [] for way in WAYS}
        for _ in range(arguments.launches):
            for way, times in seconds.items():
                without = epoch_seconds(model, way, frequency=EPOCHS + 1)
                times.append(epoch_seconds(model, way, frequency=1) - without)
        alone = statistics.median(seconds[ALONE])
        print(title)
        for way, times in seconds.items():
            median = statistics.median(times)
            print(f"  {way}: {1e3 * median:.0f} ms, {alone / median:.2f}x", flush=True)


if __name__ == "__main__":
    main()
