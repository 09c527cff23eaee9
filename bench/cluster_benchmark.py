#!/usr/bin/env python3
"""Measures a cluster of real processes: memory, start-up, and the loss of a worker.

  bazel build //coordinator //deploy/launch //ps //worker
  bench/cluster_benchmark.py [--launches=5]

Prints one line per figure: the median of the launches, the budget, and their ratio.
Needs no terminal, uses loopback only, and leaves no processes.
"""

import argparse
import json
import os
import queue
import re
import signal
import socket
import statistics
import subprocess
import tempfile
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
LINE_TIMEOUT_S = 30

# One step per epoch, so that every step prints a line.
JOB = """
model { sequential { layers { dense { units: 10 } } } }
train { synthetic { example_count: 4096 feature_count: 16 class_count: 10 }
        repeat: true }
batch_size: 32
epochs: %d
steps_per_epoch: 1
optimizer { sgd {} }
loss { sparse_categorical_crossentropy { from_logits: true } }
strategy { parameter_server {} }
"""


class Launch:
    """`launch` with a job of `steps` steps, and its output with arrival times."""

    def __init__(self, folder, steps, workers):
        job = os.path.join(folder, "bench.job")
        with open(job, "w", encoding="utf-8") as file:
            file.write(JOB % steps)
        binary = os.path.join(ROOT, "bazel-bin/deploy/launch/launch")
        self.begin_s = time.monotonic()
        self.process = subprocess.Popen(
            [binary, f"--workers={workers}", "--ps=2", "--restart",
             f"--job={job}", f"--run_dir={os.path.join(folder, 'run')}"],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self._lines = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.process.stdout:
            self._lines.put((time.monotonic(), line))

    def await_line(self, pattern):
        """Returns the time at which a matching line arrived."""
        seen = []
        while True:
            try:
                at_s, line = self._lines.get(timeout=LINE_TIMEOUT_S)
            except queue.Empty:
                raise TimeoutError(
                    f"no line like {pattern!r} after {LINE_TIMEOUT_S} s; "
                    f"the last were:\n{''.join(seen[-10:])}") from None
            seen.append(line)
            if re.search(pattern, line):
                return at_s

    def pid_of(self, role, index):
        """Returns the id of the process whose TF_CONFIG has this task."""
        children = subprocess.run(
            ["pgrep", "-P", str(self.process.pid)], check=True,
            capture_output=True, text=True).stdout.split()
        for pid in children:
            with open(f"/proc/{pid}/environ", encoding="utf-8") as file:
                variables = dict(entry.split("=", 1)
                                 for entry in file.read().split("\0") if entry)
            task = json.loads(variables.get("TF_CONFIG", "{}")).get("task")
            if task == {"type": role, "index": index}:
                return int(pid)
        raise LookupError(f"no process is {role} {index}")

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        self.process.wait(timeout=LINE_TIMEOUT_S)


def measure_start(figures):
    with tempfile.TemporaryDirectory() as folder:
        launch = Launch(folder, steps=1, workers=2)
        try:
            first_step_s = launch.await_line(r"chief +\| 1/1 ")
            figures["first step of a cluster of 5, s"].append(
                first_step_s - launch.begin_s)
            launch.await_line("the job is done; see")
        finally:
            launch.stop()


def measure_loss(figures):
    with tempfile.TemporaryDirectory() as folder:
        launch = Launch(folder, steps=1_000_000, workers=2)
        try:
            launch.await_line("^chief +\\| Epoch 100/")
            pid = launch.pid_of("worker", 0)
            killed_s = time.monotonic()
            os.kill(pid, signal.SIGKILL)
            lost_s = launch.await_line(r"worker 0 .* is lost")
            figures["worker killed: detected, ms"].append(
                1e3 * (lost_s - killed_s))
            figures["worker killed: next applied step, ms"].append(
                1e3 * (launch.await_line(r"chief +\| 1/1 ") - killed_s))
            figures["worker killed: back at work, ms"].append(
                1e3 * (launch.await_line("worker 0 .* has reconnected, incarnation") - killed_s))
        finally:
            launch.stop()


def measure_idle_memory(figures):
    """Returns the memory of a worker and a server that wait for a coordinator."""
    ports = []
    with socket.socket() as one, socket.socket() as two:
        for held in (one, two):
            held.bind(("localhost", 0))
            ports.append(held.getsockname()[1])
    cluster = {"worker": [f"localhost:{ports[0]}"],
               "ps": [f"localhost:{ports[1]}"]}
    for role, binary in (("worker", "worker/worker"), ("ps", "ps/ps")):
        config = {"cluster": cluster, "task": {"type": role, "index": 0}}
        process = subprocess.Popen(
            [os.path.join(ROOT, "bazel-bin", binary)],
            env={**os.environ, "TF_CONFIG": json.dumps(config)},
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        try:
            process.stdout.readline()  # The process prints it when it listens.
            with open(f"/proc/{process.pid}/status", encoding="utf-8") as file:
                resident_kib = int(
                    re.search(r"VmRSS:\s+(\d+)", file.read()).group(1))
            figures[f"idle {role}, MiB"].append(resident_kib / 1024)
        finally:
            process.terminate()
            process.wait(timeout=LINE_TIMEOUT_S)


BUDGETS = {
    "idle worker, MiB": 40,
    "idle ps, MiB": 40,
    "first step of a cluster of 5, s": 0.5,
    "worker killed: detected, ms": 10,
    "worker killed: next applied step, ms": 1000,
    "worker killed: back at work, ms": 250,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--launches", type=int, default=5)
    launches = parser.parse_args().launches
    figures = {name: [] for name in BUDGETS}
    for _ in range(launches):
        measure_idle_memory(figures)
        measure_start(figures)
        measure_loss(figures)
    print(f"{'':40} {'median':>9} {'lowest':>9} {'highest':>9} "
          f"{'budget':>8} {'ratio':>6}")
    for name, values in figures.items():
        median = statistics.median(values)
        print(f"{name:40} {median:9.2f} {min(values):9.2f} {max(values):9.2f} "
              f"{BUDGETS[name]:8} {median / BUDGETS[name]:6.2f}")


if __name__ == "__main__":
    main()
