#!/usr/bin/env python3
"""Trains in sync on parameter servers while workers are suspended, and measures the throughput.

  bazel build //deploy/launch //worker //ps //coordinator //tests/faults:fit_counting_program
  bench/synchronous_updates_benchmark.py [--seconds=20] [--rounds=3]

`launch` starts three workers, two parameter servers and a program whose variables count its
updates. In each round it trains for SECONDS undisturbed, and for as long while one worker after
the other is suspended for 4 of 6 seconds, which is not long enough to count as lost. Prints the
throughput as a share of the undisturbed one, without backup workers, with one, and asynchronously.
The program checks at its end that each step was counted once. Uses loopback only, and leaves no
processes.
"""

import argparse
import os
import pathlib
import re
import signal
import statistics
import sys
import tempfile
import time

import coordinator_return_benchmark as returning

TIMEOUT_S = 60
SUSPENDED_S = 4
RUNNING_S = 2
WORKERS = 3
KINDS = {"asynchronous": -1, "in sync": 0, "in sync, one backup worker": 1}


def worker_of(launch, index):
    """Returns the process of a worker among the children of `launch`."""
    wanted = f'"task":{{"type":"worker","index":{index}}}'.encode()
    children = pathlib.Path(f"/proc/{launch.pid}/task/{launch.pid}/children")
    for child in children.read_text().split():
        if wanted in pathlib.Path(f"/proc/{child}/environ").read_bytes():
            return int(child)
    sys.exit(f"launch has no worker {index}")


def epochs_per_second(run, seconds, disturb):
    first, start = run.newest_epoch, time.monotonic()
    disturb(start + seconds)
    time.sleep(max(0, start + seconds - time.monotonic()))
    return (run.newest_epoch - first) / (time.monotonic() - start)


def suspend_workers(run, deadline):
    index = 0
    while time.monotonic() + SUSPENDED_S + RUNNING_S <= deadline:
        worker = worker_of(run.process, index % WORKERS)
        os.kill(worker, signal.SIGSTOP)
        time.sleep(SUSPENDED_S)
        os.kill(worker, signal.SIGCONT)
        time.sleep(RUNNING_S)
        index += 1


def measure(backup_workers, seconds):
    """Returns the steps per second undisturbed, and with suspended workers."""
    with tempfile.TemporaryDirectory() as folder:
        until = pathlib.Path(folder) / "until"
        run = returning.Run(folder, until, workers=WORKERS,
                            settings=("--set", f"backup_workers={backup_workers}"))
        run.await_epoch(20)
        undisturbed = epochs_per_second(run, seconds, lambda deadline: None)
        disturbed = epochs_per_second(run, seconds,
                                      lambda deadline: suspend_workers(run, deadline))
        until.touch()
        run.process.wait(timeout=TIMEOUT_S)
        output = "\n".join(run.lines)
    if run.process.returncode != 0 or not re.search("every step counted once", output):
        sys.exit(f"the run failed:\n{output[-3000:]}")
    return undisturbed * returning.STEPS, disturbed * returning.STEPS


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    figures = {kind: [] for kind in KINDS}
    for _ in range(arguments.rounds):
        for kind, backup_workers in KINDS.items():
            figures[kind].append(measure(backup_workers, arguments.seconds))
    for kind, pairs in figures.items():
        steps = statistics.median(pair[0] for pair in pairs)
        shares = sorted(pair[1] / pair[0] for pair in pairs)
        print(f"{kind}: {steps:.0f} steps/s; with a suspended worker "
              f"{statistics.median(shares):.2f} of them ({shares[0]:.2f} to {shares[-1]:.2f})")


if __name__ == "__main__":
    main()
