#!/usr/bin/env python3
"""Compares steps of models with programs with steps of Keras on JAX and of Muster's kernels.

    bazel build //coordinator //deploy/launch //ps //worker
    bench/program_benchmark.py --python=VENV/bin/python

Each round trains each model with muster.fit() in one process and with Keras, one after the
other. Prints the median step of all rounds and ratios. A step of Muster is what summary.json
calls worker_step; a step of Keras is an epoch after the first one, divided by its steps.
Budgets: 1.05 of Keras for models that are one program; 1.1 of Muster's kernels for MobileNetV2
with one layer of the user's own. Two workers: the part of the speed of one process that is left
must be 0.97 of what Muster's kernels keep. A run of two steps, with compiled programs on the disk,
may take 0.5 s longer than with Muster's kernels.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
BATCHES = 20


def models():
    """Returns {name: (function that makes a model, shape of an input, batch size)}."""
    import keras

    layers, ops = keras.layers, keras.ops

    class Own(layers.Layer):
        def build(self, shape):
            self.gain = self.add_weight(shape=(shape[-1],), initializer="ones")

        def call(self, x):
            return x * self.gain + 0.1 * ops.sin(x)

    class Mlp(keras.Model):
        def __init__(self):
            super().__init__()
            self.parts = [layers.Dense(512, "relu"), layers.Dense(512, "relu"), layers.Dense(10)]

        def call(self, x):
            for part in self.parts:
                x = part(x)
            return x

    class Block(keras.Model):
        """A transformer block, and a classifier of its mean."""

        def __init__(self):
            super().__init__()
            self.attention = layers.MultiHeadAttention(4, 32)
            self.first, self.second = layers.LayerNormalization(), layers.LayerNormalization()
            self.wide, self.narrow = layers.Dense(512, "gelu"), layers.Dense(128)
            self.logits = layers.Dense(10)

        def call(self, x):
            x = self.first(x + self.attention(x, x))
            x = self.second(x + self.narrow(self.wide(x)))
            return self.logits(ops.mean(x, axis=1))

    def mobile_net(has_own_layer):
        base = keras.applications.MobileNetV2((96, 96, 3), weights=None, classes=10,
                                              classifier_activation=None)
        if not has_own_layer:
            return base

        def call(layer, *arguments, **options):
            outputs = layer(*arguments, **options)
            return Own()(outputs) if layer.name == "block_6_project_BN" else outputs

        return keras.models.clone_model(base, input_tensors=keras.Input((96, 96, 3)),
                                        call_function=call)

    return {
        "MLP 784-512-512-10": (Mlp, (784,), 128),
        "transformer block": (Block, (64, 128), 32),
        "MobileNetV2": (lambda: mobile_net(False), (96, 96, 3), 32),
        "MobileNetV2, own layer": (lambda: mobile_net(True), (96, 96, 3), 32),
    }


def functional_block():
    """Returns a transformer block that Muster's kernels and a program can compute."""
    import keras

    layers = keras.layers
    inputs = keras.Input((64, 128))
    x = layers.LayerNormalization()(inputs + layers.MultiHeadAttention(4, 32)(inputs, inputs))
    x = layers.LayerNormalization()(x + layers.Dense(128)(layers.Dense(512, "gelu")(x)))
    return keras.Model(inputs, layers.Dense(10)(layers.GlobalAveragePooling1D()(x)))


def muster_step_ms(model, x, y, batch_size, **options):
    import muster

    with tempfile.TemporaryDirectory() as folder:
        muster.fit(model, x, y, batch_size=batch_size, epochs=2, shuffle=False, verbose=0,
                   run_dir=folder + "/run", **options)
        with open(folder + "/run/summary.json", encoding="utf-8") as file:
            return json.load(file)["worker_step_milliseconds"]["p50"]


def keras_step_ms(model, x, y, batch_size):
    def epoch():
        begin = time.perf_counter()
        model.fit(x, y, batch_size=batch_size, shuffle=False, verbose=0)
        return time.perf_counter() - begin

    epoch()  # Compiles.
    return 1000 * epoch() / BATCHES


def measure(rounds, skips_slow_peers):
    import keras
    import numpy

    generator = numpy.random.default_rng(1)
    found = {}
    for _ in range(rounds):
        for name, (make, shape, batch_size) in models().items():
            x = generator.normal(size=(BATCHES * batch_size, *shape)).astype("float32")
            y = generator.integers(0, 10, len(x))
            for what, step_ms in (("muster", muster_step_ms), ("keras", keras_step_ms)):
                if what == "keras" and skips_slow_peers and "MobileNetV2" in name:
                    continue
                keras.utils.set_random_seed(1)
                model = make()
                model.compile("sgd",
                              keras.losses.SparseCategoricalCrossentropy(from_logits=True))
                model(x[:batch_size])
                found.setdefault((name, what), []).append(step_ms(model, x, y, batch_size))
    medians = {key: statistics.median(values) for key, values in found.items()}
    for name in models():
        own, peer = medians[name, "muster"], medians.get((name, "keras"))
        text = f"{name:24} muster {own:8.2f} ms"
        if peer is not None:
            text += f"  Keras on JAX {peer:8.2f} ms  ratio {own / peer:.2f}"
        print(text, flush=True)
    ratio = medians["MobileNetV2, own layer", "muster"] / medians["MobileNetV2", "muster"]
    print(f"MobileNetV2 with a layer of the user's own / without: {ratio:.2f}")


def measure_clusters(rounds):
    """Compares how much slower steps of two workers are than those of one process."""
    import keras
    import numpy

    cores = sorted(os.sched_getaffinity(0))
    generator = numpy.random.default_rng(1)
    batch_size = 16  # Of a worker.
    x = generator.normal(size=(2 * BATCHES * batch_size, 64, 128)).astype("float32")
    y = generator.integers(0, 10, len(x))
    clusters = {"one process": (1, {}), "two workers in sync": (2, {"workers": 2}),
                "two workers, two servers": (1, {"workers": 2, "ps": 2})}
    found = {}
    for _ in range(rounds):
        for name, (replicas, sizes) in clusters.items():
            # A process has one core, and two workers have two.
            os.sched_setaffinity(0, cores[:1 if name == "one process" else 2])
            for backend in ("native", "program"):
                keras.utils.set_random_seed(1)
                model = functional_block()
                model.compile("sgd",
                              keras.losses.SparseCategoricalCrossentropy(from_logits=True))
                found.setdefault((name, backend), []).append(muster_step_ms(
                    model, x, y, replicas * batch_size, backend=backend, **sizes))
    os.sched_setaffinity(0, cores)
    medians = {key: statistics.median(values) for key, values in found.items()}
    for name in clusters:
        native, program = medians[name, "native"], medians[name, "program"]
        # How much of the speed of one process is left, of the program against the kernels.
        ratio = (medians["one process", "program"] / program) / (
            medians["one process", "native"] / native)
        print(f"{name:24} native {native:8.2f} ms  program {program:8.2f} ms  ratio {ratio:.2f}")


def measure_first_step(rounds):
    """Compares how long a run of two steps takes, with compiled programs on the disk."""
    import keras
    import numpy
    import muster

    x, y = numpy.zeros((64, 64, 128), "float32"), numpy.arange(64) % 10
    seconds = {}
    for _ in range(rounds + 1):
        for backend in ("native", "program"):
            model = functional_block()
            model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
            with tempfile.TemporaryDirectory() as folder:
                job = muster.write_job(model, x, y, folder=folder, batch_size=32, verbose=0,
                                       backend=backend)
                launch = os.path.join(os.environ["MUSTER_BIN"], "deploy/launch/launch")
                begin = time.perf_counter()
                subprocess.run([launch, f"--job={job}", "--workers=0", "--ps=0",
                                f"--run_dir={folder}/run"], check=True, capture_output=True)
                seconds.setdefault(backend, []).append(time.perf_counter() - begin)
    # The first run of the program may compile it.
    native, program = (statistics.median(seconds[one][1:]) for one in ("native", "program"))
    print(f"run of two steps         native {native:8.2f} s   program {program:8.2f} s   "
          f"difference {program - native:.2f} s")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", default=sys.executable, help="one that has Keras and JAX")
    parser.add_argument("--bin_dir", default=str(ROOT / "bazel-bin"))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--skip_slow_peers", action="store_true",
                        help="do not train MobileNetV2 with Keras")
    parser.add_argument("--only_clusters", action="store_true",
                        help="measure two workers and the first step only")
    parser.add_argument("--inner", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.inner:
        measure_first_step(arguments.rounds)
        measure_clusters(arguments.rounds)
        if not arguments.only_clusters:
            measure(arguments.rounds, arguments.skip_slow_peers)
        return
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "deploy/python"),
                   "KERAS_BACKEND": "jax", "TF_CPP_MIN_LOG_LEVEL": "3",
                   "MUSTER_BIN": str(pathlib.Path(arguments.bin_dir).resolve())}
    command = [arguments.python, __file__, "--inner", f"--rounds={arguments.rounds}"]
    for name in ("skip_slow_peers", "only_clusters"):
        if getattr(arguments, name):
            command.append(f"--{name}")
    subprocess.run(command, check=True, env=environment)


if __name__ == "__main__":
    main()
