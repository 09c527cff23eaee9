#!/usr/bin/env python3
"""Kills parameter servers with logs again and again while they train, and measures the pauses.
Then measures what the log costs.

  bazel build //deploy/launch //worker //ps //coordinator //tests/faults:fit_counting_program \\
      //bench:parameter_server_benchmark
  bench/server_log_benchmark.py [--kills=60] [--runs=5] [--folder=FOLDER]

`launch --restart` starts two workers, two parameter servers and a program whose
variables count its steps, and starts a server again after each kill. A pause lasts
from the kill to the end of the next epoch that was not complete before; an epoch takes
some milliseconds. The program checks at its end that each step was counted once, and
training must not be rolled back.

The price is the ratio of two runs of parameter_server_benchmark, one right after the
other, with and without a log in FOLDER. Uses loopback only, and leaves no processes.
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
PAUSE_BUDGET_S = 2.0
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


def measure(kills):
    """Returns the pauses, the number of steps, and that of rollbacks."""
    chance = random.Random(7)
    pauses = []
    with tempfile.TemporaryDirectory() as folder:
        until = pathlib.Path(folder) / "until"
        run = returning.Run(folder, until)
        run.await_epoch(20)
        for _ in range(kills):
            # At any place of a step.
            time.sleep(returning.SHORT_RUN_S + chance.random() / 10)
            index = chance.randrange(2)
            server = await_server(run.process, index, 0)
            os.kill(server, signal.SIGKILL)
            start = time.monotonic()
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
    if returned < kills:
        sys.exit(f"{returned} of {kills} servers came back with their state:\n{output[-3000:]}")
    return pauses, int(counted[1]), output.count("training was rolled back")


def times(folder):
    """Returns the median time of each operation, with a log in `folder` if there is one."""
    environment = dict(os.environ)
    if folder:
        environment["MUSTER_BENCHMARK_SERVER_LOG"] = folder
    output = subprocess.run(
        [ROOT / "bazel-bin/bench/parameter_server_benchmark", "dense", "small", "--lane=shared"],
        check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        env=environment).stdout
    return {found[1]: float(found[2]) for found in map(FIGURE.match, output.splitlines()) if found}


def print_price(runs, folder):
    ratios = {}
    for _ in range(runs):
        without = times(None)
        for what, time_with in times(folder).items():
            ratios.setdefault(what, []).append(time_with / without[what])
    shutil.rmtree(folder)
    for what, each in ratios.items():
        print(f"{what}: {statistics.median(each):.2f} of the time without a log "
              f"({min(each):.2f} to {max(each):.2f})")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=60)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--folder", default=None)
    arguments = parser.parse_args()
    pauses, steps, rollbacks = measure(arguments.kills)
    worst = returning.percentile(pauses, 0.99)
    print(f"{arguments.kills} kills of parameter servers in {steps} steps: each step counted "
          f"once, {rollbacks} rollbacks")
    print(f"pause: median {statistics.median(pauses):.2f} s, p99 {worst:.2f} s, "
          f"at most {max(pauses):.2f} s; {worst / PAUSE_BUDGET_S:.2f} of {PAUSE_BUDGET_S:.0f} s")
    print_price(arguments.runs, arguments.folder or tempfile.mkdtemp())


if __name__ == "__main__":
    main()
