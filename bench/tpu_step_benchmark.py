#!/usr/bin/env python3
r"""A step of TpuStrategy on one device compared with a jitted step of JAX.

  export $(tests/setup_tools.sh)
  bazel build //bench:tpu_step_benchmark
  bench/tpu_step_benchmark.py --jax_python=VENV/bin/python [--rounds=30] [--batch=128]

Trains 784-256-256-10 with SGD. A turn is 50 steps, each of which copies a batch to the device
and reads the loss. Runs one process each, alternately; see turn_taking.py. Budget: 1.05 of JAX.
"""

import argparse
import sys

import turn_taking


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--bin_dir", default="bazel-bin")
    parser.add_argument("--jax_python", default=sys.executable)
    parser.add_argument("--realtime", action="store_true")
    arguments = parser.parse_args()
    ours = str(turn_taking.ROOT / arguments.bin_dir / "bench/tpu_step_benchmark")
    steps = str(arguments.steps)
    commands = {
        "muster": [ours, str(arguments.batch), steps],
        "jax": [arguments.jax_python, "jax_mlp.py", "--batch", str(arguments.batch), "--steps",
                steps],
        "muster, 4": [ours, str(arguments.batch), steps, "4"],
    }
    turn_taking.measure("mlp", commands, arguments.rounds, arguments.realtime)


if __name__ == "__main__":
    main()
