#!/usr/bin/env python3
"""Measures the cost of mutual TLS and of the status pages.

  bazel build //bench:all //coordinator //deploy/launch //deploy/musterctl //ps //worker
  bench/protection_benchmark.py --data_dir=DIR [--launches=5] [--only=jobs,traffic,handshakes]
                               [--handshake_epochs=1]

jobs: trains examples/mnist/mnist.job (2 workers, 2 parameter servers) and
mnist_multi_worker.job (2 workers) for one epoch each through `launch`, on loopback:

  plain              tensors over shared memory, as on one machine by default
  plain, TLS         the same with mutual TLS
  gRPC               without shared memory and raw sockets, in plaintext
  gRPC, TLS          the same with mutual TLS; tasks on one host use Unix sockets
  gRPC, encrypted    the same with --nolocal_connections, as between hosts
  plain+page         plain, with the status pages, which are scraped every second

traffic: closures per second on 2 workers, and a push and pull of 1 MiB and of 200
variables of 1 KB, over gRPC and over shared memory, each in plaintext, with TLS, and
encrypted.

handshakes: the time of mnist.job with TLS while a client fails 1,000 handshakes with
the workers and the servers, compared with the time without.

Settings alternate, once in each launch. Prints the median of the launches, the
minimum and the maximum, and the ratios with their budgets. Needs no terminal and
leaves no processes.
"""

import argparse
import itertools
import json
import os
import pathlib
import re
import socket
import ssl
import statistics
import subprocess
import tempfile
import threading
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[1]
BIN = ROOT / "bazel-bin"
TIMEOUT_S = 300
OVER_GRPC = ["--noshared_memory", "--noraw_sockets"]
ENCRYPTED = ["--tls=auto", "--nolocal_connections"]
SETTINGS = {
    "plain": [],
    "plain, TLS": ["--tls=auto"],
    "gRPC": OVER_GRPC,
    "gRPC, TLS": [*OVER_GRPC, "--tls=auto"],
    "gRPC, encrypted": [*OVER_GRPC, *ENCRYPTED],
    "plain+page": ["--status_port=0"],
}
RATIOS = [("plain, TLS", "plain", 1.10), ("gRPC, TLS", "gRPC", 1.10),
          ("gRPC, encrypted", "gRPC", 1.10), ("plain+page", "plain", 1.01)]
JOBS = {"mnist.job": ["--workers=2", "--ps=2"],
        "mnist_multi_worker.job": ["--workers=2", "--ps=0"]}
HANDSHAKE_COUNT = 1000
HANDSHAKE_BUDGET = 1.05


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


def ports_of_tasks(launch_pid):
    """Returns the ports of the workers and servers that `launch` has started."""
    for child in pathlib.Path(f"/proc/{launch_pid}/task/{launch_pid}/children") \
            .read_text(encoding="ascii").split():
        environment = pathlib.Path(f"/proc/{child}/environ").read_bytes()
        for entry in environment.split(b"\0"):
            if entry.startswith(b"TF_CONFIG="):
                cluster = json.loads(entry[len("TF_CONFIG="):])["cluster"]
                return [int(address.rpartition(":")[2]) for role in ("worker", "ps")
                        for address in cluster.get(role, [])]
    return []


class BadHandshakes:
    """Fails handshakes with the tasks of a job, evenly over `duration_s`."""

    def __init__(self, launch_pid, duration_s):
        self.count = 0
        self.cpu_s = 0.0  # CPU time of the client.
        self._launch_pid = launch_pid
        self._interval_s = duration_s / HANDSHAKE_COUNT
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self):
        self._stop.set()
        self._thread.join()

    def _run(self):
        self._fail_handshakes()
        self.cpu_s = time.thread_time()

    def _fail_handshakes(self):
        ports = []
        while not ports and not self._stop.wait(0.02):
            try:
                ports = ports_of_tasks(self._launch_pid)
            except OSError:
                pass  # The process has ended.
        ways = itertools.cycle([self._nothing, self._plaintext, self._half_a_record,
                                self._no_handshake, self._no_certificate])
        start = time.monotonic()
        for port in itertools.cycle(ports):
            if self.count == HANDSHAKE_COUNT:
                return
            due_s = start + self.count * self._interval_s - time.monotonic()
            if self._stop.wait(max(0, due_s)):
                return
            try:
                with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
                    next(ways)(connection)
                self.count += 1
            except OSError:
                time.sleep(0.01)  # The task does not listen yet, or has ended.

    @staticmethod
    def _nothing(connection):
        pass

    @staticmethod
    def _plaintext(connection):
        connection.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")

    @staticmethod
    def _half_a_record(connection):
        connection.sendall(b"\x16\x03\x01\x02")

    @staticmethod
    def _no_handshake(connection):
        connection.sendall(b"\x17\x03\x03\x01\x01" + b"x" * 13)

    @staticmethod
    def _no_certificate(connection):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        context.set_alpn_protocols(["h2"])
        try:
            with context.wrap_socket(connection) as protected:
                protected.recv(1)
        except OSError:
            pass  # The server asks for a certificate.


def run_job(job, flags, data_dir, beside=None, epochs=1):
    """Runs a job. `beside(process, log_path)` returns an object that is stopped with it.

    Returns the job's summary, and the object that `beside` returned.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        log_path = folder / "log"
        with open(log_path, "w", encoding="utf-8") as log:
            process = subprocess.Popen(
                [BIN / "deploy/launch/launch", *JOBS[job], *flags,
                 f"--job={ROOT}/examples/mnist/{job}",
                 "--set", f"data_dir={data_dir}", "--set", f"epochs={epochs}",
                 f"--run_dir={folder}/run"],
                stdout=log, stderr=log)
            companion = beside(process, log_path) if beside else None
            try:
                status = process.wait(timeout=TIMEOUT_S)
            finally:
                process.kill()
                if companion is not None:
                    companion.stop()
        if status != 0:
            raise RuntimeError(log_path.read_text(encoding="utf-8")[-3000:])
        with open(folder / "run/summary.json", encoding="utf-8") as file:
            return json.load(file), companion


def step_ms(job, setting, data_dir):
    """Returns the median step of one launch."""
    beside = None
    if setting == "plain+page":
        beside = lambda _, log_path: Scraper(log_path)
    summary, _ = run_job(job, SETTINGS[setting], data_dir, beside)
    return summary["worker_step_milliseconds"]["p50"]


def report(what, values, unit):
    print(f"{what:52} {statistics.median(values):12.3f} {unit:10}"
          f" [{min(values):.3f}, {max(values):.3f}]", flush=True)


def measure_jobs(flags):
    for job in JOBS:
        steps = {setting: [] for setting in SETTINGS}
        for _ in range(flags.launches):
            for setting in SETTINGS:
                steps[setting].append(step_ms(job, setting, flags.data_dir))
        for setting, values in steps.items():
            report(f"{job}, {setting}", values, "ms a step")
        for with_it, without, budget in RATIOS:
            ratio = (statistics.median(steps[with_it]) /
                     statistics.median(steps[without]))
            print(f"{job}, {with_it} / {without}: {ratio:.3f}   budget {budget:.2f}",
                  flush=True)


def traffic(protection):
    """Returns the figures of one run by name: microseconds, or closures/s."""
    figures = {}
    environment = dict(os.environ, **protection)
    for lane in ("grpc", "shared"):
        output = subprocess.run(
            [BIN / "bench/parameter_server_benchmark", "protected", f"--lane={lane}"],
            env=environment, check=True, capture_output=True, text=True,
            timeout=TIMEOUT_S).stdout
        for name, value in re.findall(r"^(push .*?)\s{2,}([\d.e+]+) \(best", output, re.M):
            figures[f"{name}, us"] = float(value)
    output = subprocess.run(
        [BIN / "bench/scheduler_benchmark", "protected"], env=environment, check=True,
        capture_output=True, text=True, timeout=TIMEOUT_S).stdout
    figures["no-op closures, 2 workers, closures/s"] = float(
        re.search(r"no-op closures\s+W=2\s+([\d.]+)", output)[1])
    return figures


def measure_traffic(flags):
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([BIN / "deploy/musterctl/musterctl", "gen-certs", "--job_id=bench",
                        "--workers=2", "--ps=1", f"--out={folder}"],
                       check=True, capture_output=True)
        tls = {"MUSTER_BENCHMARK_TLS_DIR": folder}
        protections = {"plaintext": {}, "TLS": tls,
                       "encrypted": dict(tls, MUSTER_BENCHMARK_ENCRYPTED="1")}
        runs = {protection: [] for protection in protections}
        for _ in range(flags.launches):
            for protection, environment in protections.items():
                runs[protection].append(traffic(environment))
    for name in runs["plaintext"][0]:
        medians = {}
        for protection, figures in runs.items():
            values = [figure[name] for figure in figures]
            medians[protection] = statistics.median(values)
            what, unit = name.rsplit(", ", 1)
            report(f"{what}, {protection}", values, unit)
        for protection in ("TLS", "encrypted"):
            ratio = medians[protection] / medians["plaintext"]
            if name.endswith("closures/s"):
                ratio = 1 / ratio
            print(f"{name}: time with {protection} / plaintext: {ratio:.3f}", flush=True)


def measure_handshakes(flags):
    # Times of whole jobs, because the quantiles of a step have a resolution of 7 percent.
    durations_s = {"without": [], "beside bad handshakes": []}
    for _ in range(flags.launches):
        start = time.monotonic()
        run_job("mnist.job", ["--tls=auto"], flags.data_dir, epochs=flags.handshake_epochs)
        duration_s = time.monotonic() - start
        durations_s["without"].append(duration_s)
        start = time.monotonic()
        _, handshakes = run_job(
            "mnist.job", ["--tls=auto"], flags.data_dir,
            lambda process, _, spread_s=0.8 * duration_s: BadHandshakes(process.pid, spread_s),
            epochs=flags.handshake_epochs)
        durations_s["beside bad handshakes"].append(time.monotonic() - start)
        print(f"{handshakes.count} handshakes failed within {duration_s:.1f} s, for which "
              f"the client used {handshakes.cpu_s:.2f} s of a processor", flush=True)
    for setting, values in durations_s.items():
        report(f"mnist.job with TLS, {setting}", values, "s")
    ratio = (statistics.median(durations_s["beside bad handshakes"]) /
             statistics.median(durations_s["without"]))
    print(f"mnist.job with TLS, beside bad handshakes / without: {ratio:.3f}"
          f"   budget {HANDSHAKE_BUDGET:.2f}", flush=True)


PARTS = {"jobs": measure_jobs, "traffic": measure_traffic,
         "handshakes": measure_handshakes}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data_dir", required=True)
    parser.add_argument("--launches", type=int, default=5)
    parser.add_argument("--only", default=",".join(PARTS))
    parser.add_argument("--handshake_epochs", type=int, default=1,
                        help="of the job beside 1,000 bad handshakes: more lower their rate")
    flags = parser.parse_args()
    for part in flags.only.split(","):
        PARTS[part](flags)


if __name__ == "__main__":
    main()
