#!/usr/bin/env python3
r"""LSTM and GRU of 128 units over 128 time steps compared with TensorFlow and PyTorch.

  bazel build //bench:recurrent_benchmark
  bench/recurrent_benchmark.py [--rounds=30] [--realtime] \
      [--tensorflow_python=VENV/bin/python] [--torch_python=VENV/bin/python]

Measures a training step with SGD. Runs one process each, alternately, with the same number
of threads; see turn_taking.py.
"""

import argparse
import sys

import turn_taking


def _commands(arguments, kind):
    settings = ["--kind", kind, "--threads", str(arguments.threads)]
    settings += ["--batch", str(arguments.batch)]
    ours = str(turn_taking.ROOT / arguments.bin_dir / "bench/recurrent_benchmark")
    tensorflow = [arguments.tensorflow_python, "keras_recurrent.py", *settings]
    return {
        "muster": [ours, kind, str(arguments.threads), str(arguments.batch)],
        "tensorflow": tensorflow,
        "tensorflow, XLA": [*tensorflow, "--jit"],
        "torch": [arguments.torch_python, "torch_recurrent.py", *settings],
    }


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--bin_dir", default="bazel-bin")
    parser.add_argument("--tensorflow_python", default=sys.executable)
    parser.add_argument("--torch_python", default=sys.executable)
    parser.add_argument("--kinds", nargs="+", default=["lstm", "gru"])
    parser.add_argument("--skip", nargs="*", default=[])
    parser.add_argument("--realtime", action="store_true")
    arguments = parser.parse_args()
    for kind in arguments.kinds:
        commands = _commands(arguments, kind)
        for name in arguments.skip:
            commands.pop(name, None)
        turn_taking.measure(kind, commands, arguments.rounds, arguments.realtime)


if __name__ == "__main__":
    main()
