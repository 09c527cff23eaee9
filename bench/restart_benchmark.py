#!/usr/bin/env python3
"""Measures how long `launch --restart`, as PID 1 of a container, takes to restart a killed
worker: from SIGKILL until the new process runs, and until the coordinator uses it.

  bazel build //coordinator //deploy/launch //ps //worker
  bench/restart_benchmark.py [--kills=15]

Prints the medians and the longest, and compares the first with 250 ms; kubelet waits
10 s or more before it restarts a container that fails repeatedly. Needs root for a PID
namespace, uses loopback only, and leaves no processes.
"""

import argparse
import os
import pathlib
import signal
import statistics
import subprocess
import tempfile
import threading
import time

BIN_DIR = pathlib.Path(__file__).resolve().parent.parent / "bazel-bin"
BUDGET_MS = 250
TIMEOUT_S = 120
# A longer run is not a crash at the start (deploy/launch/restart_policy.h).
SHORT_RUN_S = 2

# Part of the TF_CONFIG of worker 1.
WORKER_1 = b'"task":{"type":"worker","index":1}'

# A job that trains until it is stopped.
JOB = """
model { sequential { layers { dense { units: 10 } } } }
train { synthetic { example_count: 64 feature_count: 8 class_count: 10 } repeat: true }
loss { sparse_categorical_crossentropy { from_logits: true } }
batch_size: 32
steps_per_epoch: 1000000
optimizer { sgd { learning_rate: 0.01 } }
epochs: 1
"""


def worker_1_below(root):
    """Returns the process id of worker 1 among the descendants of `root`, or None."""
    parents, commands = {}, {}
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            stat = pathlib.Path(f"/proc/{entry}/stat").read_text()
            command = pathlib.Path(f"/proc/{entry}/cmdline").read_bytes().split(b"\0")
            environment = pathlib.Path(f"/proc/{entry}/environ").read_bytes()
        except OSError:  # The process has ended.
            continue
        parents[int(entry)] = int(stat.rsplit(")", 1)[1].split()[1])
        commands[int(entry)] = (os.path.basename(command[0]), environment)
    for pid, (name, environment) in commands.items():
        ancestor = pid
        while ancestor in parents and ancestor != root:
            ancestor = parents[ancestor]
        if ancestor == root and name == b"worker" and WORKER_1 in environment:
            return pid
    return None


class Output(threading.Thread):
    """The lines that a process prints, each with the time of its arrival."""

    def __init__(self, stream):
        super().__init__(daemon=True)
        self._stream = stream
        self._arrived = threading.Condition()
        self._lines = []
        self.start()

    def run(self):
        for line in self._stream:
            with self._arrived:
                self._lines.append((time.monotonic(), line))
                self._arrived.notify_all()

    def await_line(self, text, after):
        """Returns the arrival time of the first line with `text` after the time `after`."""
        def found():
            return next((at for at, line in self._lines if at > after and text in line), None)

        with self._arrived:
            if not self._arrived.wait_for(lambda: found() is not None, TIMEOUT_S):
                raise TimeoutError(f'no line with "{text}":\n' +
                                   "".join(line for _, line in self._lines[-20:]))
            return found()


def await_worker(launch, other_than):
    deadline = time.monotonic() + TIMEOUT_S
    while time.monotonic() < deadline:
        pid = worker_1_below(launch.pid)
        if pid is not None and pid != other_than:
            return pid
    raise TimeoutError("worker 1 does not run")


def measure(kills, folder):
    job = pathlib.Path(folder, "endless.job")
    job.write_text(JOB)
    launch = subprocess.Popen(
        ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child",
         BIN_DIR / "deploy/launch/launch", f"--job={job}", f"--run_dir={folder}/run",
         "--workers=2", "--ps=1", "--restart", f"--bin_dir={folder}/bin"],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    output = Output(launch.stdout)
    started, used = [], []
    try:
        worker = await_worker(launch, None)
        for _ in range(kills):
            time.sleep(SHORT_RUN_S + 0.5)
            killed_at = time.monotonic()
            os.kill(worker, signal.SIGKILL)
            worker = await_worker(launch, worker)
            started.append(1e3 * (time.monotonic() - killed_at))
            used_at = output.await_line("has reconnected, incarnation", killed_at)
            used.append(1e3 * (used_at - killed_at))
    finally:
        launch.kill()
        launch.wait()
    return started, used


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=15)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.mkdir(f"{folder}/bin")
        for name in ("coordinator/coordinator", "ps/ps", "worker/worker"):
            os.symlink(BIN_DIR / name, f"{folder}/bin/{os.path.basename(name)}")
        started, used = measure(arguments.kills, folder)
    for what, times in (("the new process runs", started), ("the coordinator uses it", used)):
        print(f"{what}: median {statistics.median(times):.0f} ms, longest {max(times):.0f} ms")
    print(f"median of the first, compared with {BUDGET_MS} ms: "
          f"{statistics.median(started) / BUDGET_MS:.2f}")


if __name__ == "__main__":
    main()
