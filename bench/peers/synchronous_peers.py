#!/usr/bin/env python3
"""A synchronous step: Muster, TensorFlow's MultiWorkerMirroredStrategy and PyTorch's DDP.

    bazel build //deploy/launch //worker
    bench/peers/synchronous_peers.py --data_dir DIR --tf_python PYTHON --torch_python PYTHON

An MNIST classifier, 784-256-256-10, 64 examples per rank, 2 ranks with one thread each. A
launch is a new process group of each, one after the other, so that other load affects all of
them. Prints the median and the minimum over launches of each launch's p50, the median of its
p99, and the ratios of the peers' times to Muster's over shared memory and over gRPC, which is
TensorFlow's transport.
"""

import argparse
import json
import os
import pathlib
import signal
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import synchronous_benchmark as ours  # noqa: E402

LIMIT_SECONDS = 240


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data_dir", required=True, help="where MNIST's IDX files are")
    parser.add_argument("--tf_python", required=True)
    parser.add_argument("--torch_python", required=True)
    parser.add_argument("--bin_dir", default=ours.ROOT / "bazel-bin")
    parser.add_argument("--launches", type=int, default=5)
    parser.add_argument("--realtime", action="store_true", help="before everything else")
    arguments = parser.parse_args()
    runner = ours.Runner(arguments.bin_dir, arguments.realtime)
    print("load average before:", *os.getloadavg())
    for optimizer in ours.SLOTS:
        results = {}
        for _ in range(arguments.launches):
            _run_ours(runner, optimizer, arguments.data_dir, results)
            for command in _peers(arguments, optimizer):
                _run_peer(command, arguments.realtime, results)
        _print_table(optimizer, results)
    print("load average after:", *os.getloadavg())


def _run_ours(runner, optimizer, data_dir, results):
    for lane in ours.LANES:
        job = ours.Job(ours.MNIST, 2 * ours.BATCH, 4000, optimizer, data_dir)
        times = runner.launch(job, 2, lane)["worker_step_milliseconds"]
        results.setdefault(f"muster, {lane}", []).append((times["p50"], times["p99"]))


def _peers(arguments, optimizer):
    torch = [arguments.torch_python, HERE / "torch_mlp.py", "--threads", "1", "--ranks", "2"]
    tensorflow = [arguments.tf_python, HERE / "tf_synchronous.py", "--data_dir", arguments.data_dir]
    return [command + ["--optimizer", optimizer] for command in (torch, tensorflow)]


def _run_peer(command, realtime, results):
    prefix = ["chrt", "--rr", "20"] if realtime else []
    # In its own session, so that all its children can be ended at once.
    process = subprocess.Popen(
        prefix + command,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        output, errors = process.communicate(timeout=LIMIT_SECONDS)
    except BaseException:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        raise
    if process.returncode != 0:
        raise RuntimeError(f"{command[1]} failed:\n{errors}")
    for line in output.splitlines():
        if line.startswith("{"):
            figures = json.loads(line)
            name = f"{figures['peer']}, {figures['bench']}"
            results.setdefault(name, []).append((figures["p50"], figures["p99"]))


def _print_table(optimizer, results):
    medians = {
        name: statistics.median(p50 for p50, _ in runs) for name, runs in results.items()
    }
    print(f"\n{optimizer}, 2 ranks, ms: median [minimum] (p99); ratios to Muster\n")
    for name, runs in results.items():
        least = min(p50 for p50, _ in runs)
        p99 = statistics.median(p99 for _, p99 in runs)
        ratios = ", ".join(
            f"{medians[name] / medians[f'muster, {lane}']:.2f} x {lane}"
            for lane in ("shared memory", "gRPC")
            if not name.startswith("muster")
        )
        print(f"{name:56} {medians[name]:7.3f} [{least:7.3f}] ({p99:7.3f})  {ratios}")


if __name__ == "__main__":
    main()
