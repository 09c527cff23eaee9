#!/usr/bin/env python3
"""Measures what mutual TLS and the status pages cost a training job.

  bazel build //coordinator //deploy/launch //ps //worker
  bench/protection_benchmark.py --data_dir=DIR [--launches=5]

Trains examples/mnist/mnist.job (2 workers, 2 parameter servers) and
mnist_multi_worker.job (2 workers) for one epoch each through `launch`, on loopback:

  plain        tensors over shared memory, as on one machine by default
  gRPC         without shared memory and raw sockets, in plaintext
  gRPC, TLS    the same with mutual TLS
  plain+page   plain, with the status pages, which are scraped every second

Settings alternate, once in each launch. Prints the median step (p50 of a launch) of
the launches, the minimum and the maximum, and the ratios with their budgets. Needs
no terminal and leaves no processes.
"""

import argparse
import json
import pathlib
import re
import statistics
import subprocess
import tempfile
import threading
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[1]
TIMEOUT_S = 300
OVER_GRPC = ["--noshared_memory", "--noraw_sockets"]
SETTINGS = {
    "plain": [],
    "gRPC": OVER_GRPC,
    "gRPC, TLS": [*OVER_GRPC, "--tls=auto"],
    "plain+page": ["--status_port=0"],
}
RATIOS = [("gRPC, TLS", "gRPC", 1.10), ("plain+page", "plain", 1.01)]
JOBS = {"mnist.job": ["--workers=2", "--ps=2"],
        "mnist_multi_worker.job": ["--workers=2", "--ps=0"]}


class Scraper:
    """Reads the metrics of every page whose URL a log names, every second."""

    def __init__(self, log_path):
        self._log_path = log_path
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self):
        self._stop.set()
        self._thread.join()

    def _run(self):
        while not self._stop.wait(1):
            text = self._log_path.read_text(encoding="utf-8", errors="replace")
            for url in set(re.findall(r"status page: (http://\S+?)/?\s", text)):
                try:
                    urllib.request.urlopen(f"{url}/metrics", timeout=5).read()
                except OSError:
                    pass  # The task has ended.


def step_ms(job, setting, data_dir):
    """Returns the median step of one launch."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        log_path = folder / "log"
        with open(log_path, "w", encoding="utf-8") as log:
            process = subprocess.Popen(
                [ROOT / "bazel-bin/deploy/launch/launch", *JOBS[job],
                 *SETTINGS[setting], f"--job={ROOT}/examples/mnist/{job}",
                 "--set", f"data_dir={data_dir}", "--set", "epochs=1",
                 f"--run_dir={folder}/run"],
                stdout=log, stderr=log)
            scraper = Scraper(log_path) if setting == "plain+page" else None
            try:
                status = process.wait(timeout=TIMEOUT_S)
            finally:
                process.kill()
                if scraper is not None:
                    scraper.stop()
        if status != 0:
            raise RuntimeError(log_path.read_text(encoding="utf-8")[-3000:])
        with open(folder / "run/summary.json", encoding="utf-8") as file:
            return json.load(file)["step_milliseconds"]["p50"]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data_dir", required=True)
    parser.add_argument("--launches", type=int, default=5)
    flags = parser.parse_args()
    for job in JOBS:
        steps = {setting: [] for setting in SETTINGS}
        for _ in range(flags.launches):
            for setting in SETTINGS:
                steps[setting].append(step_ms(job, setting, flags.data_dir))
        for setting, values in steps.items():
            print(f"{job:23} {setting:12} step {statistics.median(values):7.3f} ms"
                  f"   [{min(values):.3f}, {max(values):.3f}]", flush=True)
        for with_it, without, budget in RATIOS:
            ratio = (statistics.median(steps[with_it]) /
                     statistics.median(steps[without]))
            print(f"{job:23} {with_it} / {without}: {ratio:.3f}"
                  f"   budget {budget:.2f}", flush=True)


if __name__ == "__main__":
    main()
