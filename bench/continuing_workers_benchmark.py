#!/usr/bin/env python3
"""Kills synchronous workers again and again while they train, and measures the pauses. Then
compares whole runs with and without --min_workers.

  bazel build //deploy/launch //worker //coordinator
  bench/continuing_workers_benchmark.py [--kills=30] [--workers=3] [--launches=5]

`launch --restart --min_workers=1` starts the workers, and starts a killed one again, which
joins the others. Every worker is killed in turn, the chief included. A pause lasts from the
kill to the next epoch that the other workers begin; an epoch takes some milliseconds. At the
end the weights are compared with those of a run without kills. Uses loopback only, and leaves
no processes.
"""

import argparse
import json
import os
import pathlib
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
JOB = "tests/faults/continuing_digits.job"
TIMEOUT_S = 120
PAUSE_BUDGET_S = 0.3
# More than pass between two kills.
EPOCHS_PER_KILL = 1200
EPOCH = re.compile(r"Epoch (\d+)/")


def command(folder, workers, min_workers, epochs, *flags):
    return [
        ROOT / "bazel-bin/deploy/launch/launch", f"--workers={workers}", "--ps=0",
        f"--min_workers={min_workers}", f"--run_dir={folder}", f"--job={ROOT / JOB}",
        "--set", f"epochs={epochs}", "--set", f"micro_batches={max(4, workers)}", *flags,
    ]


def weights(folder):
    return json.loads((pathlib.Path(folder) / "summary.json").read_text())["weights_sha256"]


class Run:
    """A run of launch whose output is read on a thread."""

    def __init__(self, folder, workers, epochs):
        self.process = subprocess.Popen(
            command(folder, workers, 1, epochs, "--restart=100000"),
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.changed = threading.Condition()
        self.newest_epoch = 0
        self.joined = 0
        self.ended = False
        self.lines = []
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            found = EPOCH.search(line)
            with self.changed:
                if found:
                    self.newest_epoch = max(self.newest_epoch, int(found[1]))
                elif "/step" not in line:
                    self.lines.append(line.rstrip())
                self.joined += "joins training in epoch" in line
                self.changed.notify_all()
        with self.changed:
            self.ended = True
            self.changed.notify_all()

    def wait_for(self, what, is_done):
        with self.changed:
            if not self.changed.wait_for(lambda: is_done() or self.ended, TIMEOUT_S) \
                    or not is_done():
                sys.exit(f"{what}: not within {TIMEOUT_S} s:\n" + "\n".join(self.lines[-30:]))

    def worker(self, index):
        """Returns the process id of a worker."""
        children = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        for child in children.read_text().split():
            environment = pathlib.Path(f"/proc/{child}/environ").read_bytes()
            if b'"index":%d}' % index in environment:
                return int(child)
        sys.exit(f"launch has no worker {index}")


def percentile(values, share):
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def measure(kills, workers):
    epochs = EPOCHS_PER_KILL * kills
    pauses = []
    with tempfile.TemporaryDirectory() as folder:
        run = Run(folder, workers, epochs)
        run.wait_for("epoch 20", lambda: run.newest_epoch >= 20)
        for kill in range(kills):
            joined = run.joined
            os.kill(run.worker(kill % workers), signal.SIGKILL)
            start = time.monotonic()
            epoch = run.newest_epoch
            run.wait_for("the next epoch", lambda: run.newest_epoch > epoch)
            pauses.append(time.monotonic() - start)
            run.wait_for("the return of the worker", lambda: run.joined > joined)
            epoch = run.newest_epoch
            run.wait_for("training", lambda: run.newest_epoch > epoch + 20)
        run.process.wait(timeout=TIMEOUT_S + epochs / 20)
        if run.process.returncode != 0:
            sys.exit("the run failed:\n" + "\n".join(run.lines[-30:]))
        disturbed = weights(folder)
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(command(folder, workers, 0, epochs), check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        if weights(folder) != disturbed:
            sys.exit("the weights are not those of a run without kills")
    return pauses, epochs


def run_seconds(workers, min_workers):
    with tempfile.TemporaryDirectory() as folder:
        start = time.monotonic()
        subprocess.run(command(folder, workers, min_workers, 600), check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return time.monotonic() - start


def print_price(workers, launches):
    ratios = []
    for _ in range(launches):
        without = run_seconds(workers, 0)
        ratios.append(run_seconds(workers, 1) / without)
    print(f"run of 600 epochs with --min_workers: {statistics.median(ratios):.2f} of one without "
          f"({min(ratios):.2f} to {max(ratios):.2f})")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--launches", type=int, default=5)
    arguments = parser.parse_args()
    pauses, epochs = measure(arguments.kills, arguments.workers)
    median = statistics.median(pauses)
    print(f"{arguments.kills} kills of {arguments.workers} workers in {epochs} epochs: the weights "
          "are bitwise those of a run without kills")
    print(f"pause: median {median:.2f} s, p99 {percentile(pauses, 0.99):.2f} s, at most "
          f"{max(pauses):.2f} s; the median is {median / PAUSE_BUDGET_S:.2f} of "
          f"{PAUSE_BUDGET_S} s")
    print_price(arguments.workers, arguments.launches)


if __name__ == "__main__":
    main()
