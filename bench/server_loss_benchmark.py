#!/usr/bin/env python3
"""Kills parameter servers again and again while they train, and measures the pauses. They keep
logs, or copies on other servers. Then measures what that costs.

  bazel build //deploy/launch //worker //ps //coordinator //tests/faults:fit_counting_program \\
      //bench:parameter_server_benchmark
  bench/server_loss_benchmark.py [--kills=60] [--runs=5] [--folder=FOLDER] [--copies]

`launch --restart` starts two workers, two parameter servers and a program whose
variables count its steps, and starts a server again after each kill. With --copies
each server has a copy, and the killed task is one that serves or one that holds a copy;
the next kill follows when all copies are complete. A pause lasts
from the kill to the end of the next epoch that was not complete before; an epoch takes
some milliseconds. The program checks at its end that each step was counted once, and
training must not be rolled back.

The price is the ratio of two runs of parameter_server_benchmark, one right after the
other, with and without a log in FOLDER or a copy. Uses loopback only, and leaves no processes.
"""

import argparse
import os
import pathlib
import random
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

import coordinator_return_benchmark as returning

ROOT = pathlib.Path(__file__).resolve().parents[1]
TIMEOUT_S = 60
PAUSE_BUDGET_S = 0.5
FIGURE = re.compile(r"^(.*), shared memory +([0-9.e+]+) \(best")


def server_of(launch, index):
    """Returns the process of a parameter server among the children of `launch`; 0 if none."""
    wanted = f'"task":{{"type":"ps","index":{index}}}'.encode()
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            stat = pathlib.Path(f"/proc/{entry}/stat").read_text()
            environment = pathlib.Path(f"/proc/{entry}/environ").read_bytes()
        except OSError:  # The process has ended.
            continue
        parent = int(stat.rsplit(")", 1)[1].split()[1])
        if parent == launch.pid and wanted in environment:
            return int(entry)
    return 0


def await_server(launch, index, other_than):
    deadline = time.monotonic() + TIMEOUT_S
    while time.monotonic() < deadline:
        pid = server_of(launch, index)
        if pid not in (0, other_than):
            return pid
        time.sleep(0.005)
    raise TimeoutError(f"ps {index} does not run")


def await_copies(run, count):
    """Blocks until `count` copies have become complete since the begin."""
    deadline = time.monotonic() + TIMEOUT_S
    while time.monotonic() < deadline:
        if sum("and can take over" in line for line in run.lines) >= count:
            return
        time.sleep(0.005)
    raise TimeoutError("a copy is not complete")


def measure(kills, copies):
    """Returns the pauses, the number of steps, and that of rollbacks."""
    chance = random.Random(7)
    pauses = []
    tasks = 4 if copies else 2
    with tempfile.TemporaryDirectory() as folder:
        until = pathlib.Path(folder) / "until"
        run = returning.Run(folder, until, tasks,
                            ("--set", "ps_copies=2") if copies else ())
        run.await_epoch(20)
        for kill in range(kills):
            if copies:
                await_copies(run, 2 + kill)
            # At any place of a step.
            time.sleep(returning.SHORT_RUN_S + chance.random() / 10)
            index = chance.randrange(tasks)
            server = await_server(run.process, index, 0)
            os.kill(server, signal.SIGKILL)
            start = time.monotonic()
            if not copies:
                await_server(run.process, index, server)
            run.await_epoch(run.newest_epoch + 1)
            pauses.append(time.monotonic() - start)
        until.touch()
        run.process.wait(timeout=TIMEOUT_S)
        output = "\n".join(run.lines)
    counted = re.search(r"every step counted once: (\d+)", output)
    if run.process.returncode != 0 or not counted:
        sys.exit(f"the run failed:\n{output[-3000:]}")
    returned = output.count("; nothing was undone")
    if not copies and returned < kills:
        sys.exit(f"{returned} of {kills} servers came back with their state:\n{output[-3000:]}")
    return pauses, int(counted[1]), output.count("training was rolled back")


def times(settings):
    """Returns the median time of each operation, with these variables of the environment."""
    environment = dict(os.environ, **settings)
    output = subprocess.run(
        [ROOT / "bazel-bin/bench/parameter_server_benchmark", "dense", "small", "--lane=shared"],
        check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        env=environment).stdout
    return {found[1]: float(found[2]) for found in map(FIGURE.match, output.splitlines()) if found}


def print_price(runs, folder, copies):
    ratios = {}
    for _ in range(runs):
        without = times({})
        settings = {"MUSTER_BENCHMARK_COPIES": "1"} if copies else {
            "MUSTER_BENCHMARK_SERVER_LOG": folder}
        for what, time_with in times(settings).items():
            ratios.setdefault(what, []).append(time_with / without[what])
    shutil.rmtree(folder)
    for what, each in ratios.items():
        print(f"{what}: {statistics.median(each):.2f} of the time without "
              f"({min(each):.2f} to {max(each):.2f})")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=60)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--folder", default=None)
    parser.add_argument("--copies", action="store_true")
    arguments = parser.parse_args()
    pauses, steps, rollbacks = measure(arguments.kills, arguments.copies)
    worst = returning.percentile(pauses, 0.99)
    print(f"{arguments.kills} kills of parameter servers in {steps} steps: each step counted "
          f"once, {rollbacks} rollbacks")
    print(f"pause: median {statistics.median(pauses):.2f} s, p99 {worst:.2f} s, "
          f"at most {max(pauses):.2f} s; {worst / PAUSE_BUDGET_S:.2f} of {PAUSE_BUDGET_S} s")
    print_price(arguments.runs, arguments.folder or tempfile.mkdtemp(), arguments.copies)


if __name__ == "__main__":
    main()
