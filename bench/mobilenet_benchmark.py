#!/usr/bin/env python3
r"""MobileNetV2 at 224 x 224 compared with TensorFlow and PyTorch: training and inference.

  bazel build //bench:mobilenet_benchmark
  bench/mobilenet_benchmark.py [--rounds=9] [--realtime] \
      [--tensorflow_python=VENV/bin/python] [--torch_python=VENV/bin/python]

Runs one process each, with the same number of threads. All are warmed up before the first
round. In each round, every process runs one step while the others wait, so that other load
affects all of them. A line has the median step and the peak memory of the process; ratios
are medians over the rounds of the peer's time divided by Muster's. --realtime gives the
measured processes priority over all others.
"""

import argparse
import pathlib
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
PEERS = ROOT / "bench" / "peers"


class Runner:
    """A process that runs a step on request."""

    def __init__(self, name, command, realtime):
        self.name = name
        prefix = ["chrt", "--rr", "20"] if realtime else []
        self._process = subprocess.Popen(
            prefix + command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            cwd=PEERS,
        )
        self.samples_ms = []

    def wait_until_warm(self):
        for line in self._process.stdout:
            if line.strip() == "ready":
                return
        raise RuntimeError(f"{self.name} ended before it was ready")

    def step(self):
        self._process.stdin.write("step\n")
        self._process.stdin.flush()
        self.samples_ms.append(float(self._process.stdout.readline()))

    def finish(self):
        """Returns the peak memory in MiB."""
        self._process.stdin.close()
        peak_mib = float(self._process.stdout.readline())
        self._process.wait(timeout=60)
        return peak_mib


def _commands(arguments, mode):
    settings = ["--mode", mode, "--threads", str(arguments.threads)]
    settings += ["--batch", str(arguments.batch)]
    tensorflow = [arguments.tensorflow_python, "keras_mobilenet.py", *settings]
    torch = [arguments.torch_python, "torch_mobilenet.py", *settings]
    ours = [str(ROOT / arguments.bin_dir / "bench/mobilenet_benchmark"), mode]
    return {
        "muster": ours + [str(arguments.threads), str(arguments.batch)],
        "tensorflow": tensorflow,
        "tensorflow, XLA": [*tensorflow, "--jit"],
        "torch": torch,
    }


def _measure(arguments, mode):
    runners = []
    for name, command in _commands(arguments, mode).items():
        if name not in arguments.skip:
            runners.append(Runner(name, command, arguments.realtime))
            # One after another, because they would slow each other down.
            runners[-1].wait_until_warm()
    for _ in range(arguments.rounds):
        for runner in runners:
            runner.step()
    ours = runners[0].samples_ms
    for runner in runners:
        ratios = [theirs / mine for theirs, mine in zip(runner.samples_ms, ours)]
        print(
            f"{mode:8} {runner.name:16} {statistics.median(runner.samples_ms):8.1f} ms"
            f"  min {min(runner.samples_ms):8.1f}  peak {runner.finish():7.0f} MiB"
            f"  ratio {statistics.median(ratios):5.2f}"
            f" ({min(ratios):.2f} to {max(ratios):.2f})",
            flush=True,
        )


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
        _measure(arguments, mode)


if __name__ == "__main__":
    main()
