#!/usr/bin/env python3
"""Kills a coordinator again and again while it trains, and measures the pauses. Then compares
whole runs with and without a journal.

  bazel build //deploy/launch //worker //ps //coordinator //tests/faults:fit_counting_program
  bench/coordinator_return_benchmark.py [--kills=100] [--launches=5]

`launch --restart` starts two workers, two parameter servers and a program whose
variables count its steps, and starts the coordinator again after each kill. A
pause lasts from the kill to the end of the next epoch that was not complete
before; an epoch takes some milliseconds. The program checks at its end that each
step was counted once. Uses loopback only, and leaves no processes.
"""

import argparse
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
PAUSE_BUDGET_S = 2.0
TIMEOUT_S = 60
STEPS = 50
# launch restarts a task at once if it ran for longer (deploy/launch/restart_policy.h).
SHORT_RUN_S = 2
EPOCH = re.compile(r"end of epoch (\d+)")


class Run:
    """A run of launch whose output is read on a thread."""

    def __init__(self, folder, until, ps=2, settings=(), workers=2):
        binaries = ROOT / "bazel-bin"
        self.process = subprocess.Popen(
            [
                binaries / "deploy/launch/launch", f"--workers={workers}", f"--ps={ps}",
                "--restart=100000", f"--run_dir={folder}",
                f"--program={binaries}/tests/faults/fit_counting_program",
                "--", "--set", "epochs=1000000", "--set", f"steps={STEPS}",
                "--set", f"until={until}", *settings,
            ],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.changed = threading.Condition()
        self.newest_epoch = 0
        self.ended = False
        self.lines = []
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            found = EPOCH.search(line)
            with self.changed:
                if found:
                    self.newest_epoch = max(self.newest_epoch, int(found[1]))
                else:
                    self.lines.append(line.rstrip())
                self.changed.notify_all()
        with self.changed:
            self.ended = True
            self.changed.notify_all()

    def await_epoch(self, epoch):
        """Blocks until `epoch` is complete."""
        with self.changed:
            done = self.changed.wait_for(
                lambda: self.newest_epoch >= epoch or self.ended, TIMEOUT_S)
            if not done or self.newest_epoch < epoch:
                sys.exit(f"epoch {epoch} did not end within {TIMEOUT_S} s:\n"
                         + "\n".join(self.lines[-30:]))

    def coordinator(self):
        """Returns the process id of the coordinator."""
        children = pathlib.Path(
            f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        for child in children.read_text().split():
            environment = pathlib.Path(f"/proc/{child}/environ").read_bytes()
            if b'"type":"chief"' in environment:
                return int(child)
        sys.exit("launch has no coordinator")


def percentile(values, share):
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def measure(kills):
    pauses = []
    with tempfile.TemporaryDirectory() as folder:
        until = pathlib.Path(folder) / "until"
        run = Run(folder, until)
        run.await_epoch(20)
        for _ in range(kills):
            time.sleep(SHORT_RUN_S)
            os.kill(run.coordinator(), signal.SIGKILL)
            start = time.monotonic()
            run.await_epoch(run.newest_epoch + 1)
            pauses.append(time.monotonic() - start)
        until.touch()
        run.process.wait(timeout=TIMEOUT_S)
        output = "\n".join(run.lines)
    counted = re.search(r"every step counted once: (\d+)", output)
    if run.process.returncode != 0 or not counted:
        sys.exit(f"the run failed:\n{output[-3000:]}")
    return pauses, int(counted[1])


def run_seconds(steps, epochs, timeout):
    """Returns the time of a whole run without kills. "0" keeps no journal."""
    binaries = ROOT / "bazel-bin"
    with tempfile.TemporaryDirectory() as folder:
        start = time.monotonic()
        subprocess.run(
            [
                binaries / "deploy/launch/launch", "--workers=2", "--ps=2",
                f"--run_dir={folder}", f"--coordinator_return_timeout={timeout}",
                f"--program={binaries}/tests/faults/fit_counting_program",
                "--", "--set", f"epochs={epochs}", "--set", f"steps={steps}",
            ],
            check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return time.monotonic() - start


def print_price(launches):
    for steps, epochs in ((20000, 1), (STEPS, 200)):
        ratios = []
        for _ in range(launches):
            without = run_seconds(steps, epochs, "0")
            ratios.append(run_seconds(steps, epochs, "2m") / without)
        print(f"run of {epochs} epochs of {steps} steps with a journal: "
              f"{statistics.median(ratios):.2f} of one without "
              f"({min(ratios):.2f} to {max(ratios):.2f})")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--launches", type=int, default=5)
    arguments = parser.parse_args()
    kills = arguments.kills
    pauses, steps = measure(kills)
    worst = percentile(pauses, 0.99)
    print(f"{kills} kills of the coordinator in {steps} steps: each counted "
          "once")
    print(f"pause: median {statistics.median(pauses):.2f} s, p99 {worst:.2f} s,"
          f" at most {max(pauses):.2f} s; {worst / PAUSE_BUDGET_S:.2f} of "
          f"{PAUSE_BUDGET_S:.0f} s")
    print_price(arguments.launches)


if __name__ == "__main__":
    main()
