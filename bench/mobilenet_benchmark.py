#!/usr/bin/env python3
r"""MobileNetV2 at 224 x 224 compared with TensorFlow and PyTorch: training and inference.

  bazel build //bench:mobilenet_benchmark
  bench/mobilenet_benchmark.py [--rounds=9] [--realtime] \
      [--tensorflow_python=VENV/bin/python] [--torch_python=VENV/bin/python]

Runs one process each, alternately, with the same number of threads; see turn_taking.py.
--realtime gives the measured processes priority over all others.
"""

import argparse
import sys

import turn_taking


def _commands(arguments, mode):
    settings = ["--mode", mode, "--threads", str(arguments.threads)]
    settings += ["--batch", str(arguments.batch)]
    tensorflow = [arguments.tensorflow_python, "keras_mobilenet.py", *settings]
    torch = [arguments.torch_python, "torch_mobilenet.py", *settings]
    ours = [str(turn_taking.ROOT / arguments.bin_dir / "bench/mobilenet_benchmark"), mode]
    return {
        "muster": ours + [str(arguments.threads), str(arguments.batch)],
        "tensorflow": tensorflow,
        "tensorflow, XLA": [*tensorflow, "--jit"],
        "torch": torch,
    }


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--bin_dir", default="bazel-bin")
    parser.add_argument("--tensorflow_python", default=sys.executable)
    parser.add_argument("--torch_python", default=sys.executable)
    parser.add_argument("--modes", nargs="+", default=["train", "predict"])
    parser.add_argument("--skip", nargs="*", default=[])
    parser.add_argument("--realtime", action="store_true")
    arguments = parser.parse_args()
    for mode in arguments.modes:
        commands = _commands(arguments, mode)
        for name in arguments.skip:
            commands.pop(name, None)
        turn_taking.measure(mode, commands, arguments.rounds, arguments.realtime)


if __name__ == "__main__":
    main()
