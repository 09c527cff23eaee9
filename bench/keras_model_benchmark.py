#!/usr/bin/env python3
r"""Models of Keras compared with TensorFlow and PyTorch: training steps, loading a file.

  bazel build //bench:keras_model_benchmark
  bench/keras_model_benchmark.py [--rounds=15] [--realtime] [--models attention load] \
      [--tensorflow_python=VENV/bin/python] [--torch_python=VENV/bin/python]

Keras writes the models (peers/keras_models.py), and Muster loads them. Muster and each peer
run steps in separate processes, alternately, with the same number of threads; see
turn_taking.py.
"""

import argparse
import pathlib
import statistics
import subprocess
import sys
import tempfile

import turn_taking

BATCHES = {"attention": 8, "resnet50": 32, "unet": 8}
LOADS = 3  # In each process; the first load is a warm-up.


def _save(arguments, model, file):
    command = [arguments.tensorflow_python, "keras_models.py", "--model", model, "--save", file]
    subprocess.run(command, check=True, cwd=turn_taking.PEERS, stderr=subprocess.DEVNULL)


def _measure_steps(arguments, ours, folder, model):
    file = str(folder / f"{model}.keras")
    _save(arguments, model, file)
    batch, threads = str(BATCHES[model]), str(arguments.threads)
    settings = ["--model", model, "--threads", threads, "--batch", batch]
    tensorflow = [arguments.tensorflow_python, "keras_models.py", *settings]
    torch = [arguments.torch_python, "torch_models.py", *settings]
    commands = {
        "muster": [ours, "step", file, threads, batch],
        "tensorflow": tensorflow,
        "tensorflow, XLA": [*tensorflow, "--jit"],
        "torch": torch,
        "torch, compiled": [*torch, "--compile"],
    }
    for name in arguments.skip:
        commands.pop(name, None)
    turn_taking.measure(model, commands, arguments.rounds, arguments.realtime)


def _measure_loads(arguments, ours, folder):
    file = str(folder / "wide.keras")
    _save(arguments, "wide", file)
    commands = {
        "muster": [ours, "load", file, str(LOADS)],
        "keras": [arguments.tensorflow_python, "keras_models.py", "--load", file,
                  "--count", str(LOADS)],
    }
    prefix = ["chrt", "--rr", "20"] if arguments.realtime else []
    times = {name: [] for name in commands}
    for _ in range(arguments.rounds):
        for name, command in commands.items():
            lines = subprocess.run(prefix + command, check=True, cwd=turn_taking.PEERS, text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
            times[name].append(statistics.median(map(float, lines.split())))
    for name, medians in times.items():
        ratios = [theirs / mine for theirs, mine in zip(medians, times["muster"])]
        print(f"load 100 MB  {name:8} median {statistics.median(medians):7.1f} ms"
              f"  ({min(medians):.1f} to {max(medians):.1f})"
              f"  ratio {statistics.median(ratios):.2f}"
              f" ({min(ratios):.2f} to {max(ratios):.2f})", flush=True)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--bin_dir", default="bazel-bin")
    parser.add_argument("--tensorflow_python", default=sys.executable)
    parser.add_argument("--torch_python", default=sys.executable)
    parser.add_argument("--models", nargs="+", choices=[*BATCHES, "load"],
                        default=[*BATCHES, "load"])
    parser.add_argument("--skip", nargs="*", default=[])
    parser.add_argument("--realtime", action="store_true")
    arguments = parser.parse_args()
    ours = str(turn_taking.ROOT / arguments.bin_dir / "bench/keras_model_benchmark")
    with tempfile.TemporaryDirectory() as folder:
        for model in arguments.models:
            if model == "load":
                _measure_loads(arguments, ours, pathlib.Path(folder))
            else:
                _measure_steps(arguments, ours, pathlib.Path(folder), model)


if __name__ == "__main__":
    main()
