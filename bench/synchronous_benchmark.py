#!/usr/bin/env python3
"""Measures synchronous training with real processes, started through `launch`.

  bazel build //deploy/launch //worker
  bench/synchronous_benchmark.py --data_dir=DIR [--launches=5]

  step     a step of an MNIST classifier, 784-256-256-10, 64 examples per replica:
           one worker, and two over shared memory, raw sockets and gRPC
  scaling  two workers with a core each, compared with one worker on one core, at
           the same global batch
  images   the same for MobileNetV2 at 224x224, 32 images per step; and compared
           with two independent workers with half of the images each, at the same
           time, which is the limit of the machine's two cores
  memory   the memory of a rank in addition to its weights and optimizer slots
  overlap  50 MB of weights in 8 layers: gradients sent during the backward pass,
           compared with gradients sent after it, over raw sockets on this host
           and, as root, between two network namespaces over a link of known
           bandwidth, whose workers are started without `launch`

One thread per rank. Settings alternate, once in each launch. A line has the
median, the minimum and the maximum over the launches of a launch's p50. Uses
loopback and its own namespaces only, and leaves no processes. --realtime gives
the measured processes priority over all others.
"""

import argparse
import contextlib
import dataclasses
import json
import os
import pathlib
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
TIMEOUT_S = 120
BATCH = 64
STEP_BUDGET_MS = 0.95
EFFICIENCY_BUDGET = 0.9
IMAGES_EFFICIENCY_BUDGET = 0.95
OVERLAP_BUDGET = 0.8
SHARDED_STATE_BUDGET = 0.55
SHARDED_STEP_BUDGET = 1.05
FLOAT_BYTES = 4
MIB = 1 << 20

LANES = {
    "shared memory": [],
    "raw sockets": ["--noshared_memory"],
    "gRPC": ["--noshared_memory", "--noraw_sockets"],
}
SLOTS = {"sgd": 0, "adam": 2}
OVERLAP_BATCH = 1024  # Per replica.
OVERLAP_STEPS = 15
# One pack for each of the large layers: a pack is sent when it exceeds this
# size.
OVERLAP_BYTES_PER_PACK = 6_000_000
NAMESPACES = ("muster-bench-0", "muster-bench-1")
HOSTS = ("10.213.0.1", "10.213.0.2")
PORT = 23571  # Free in the namespaces, because they are new.


@dataclasses.dataclass(frozen=True)
class Network:
    """A classifier of dense layers."""

    feature_count: int
    units: tuple
    example_count = 2048  # Synthetic.

    def parameter_count(self):
        widths = (self.feature_count, *self.units)
        return sum((a + 1) * b for a, b in zip(widths, widths[1:]))

    def text(self):
        layers = ["layers { flatten {} }"]
        for units in self.units[:-1]:
            layers.append(
                f"layers {{ dense {{ units: {units} activation: RELU }} }}")
        layers.append(f"layers {{ dense {{ units: {self.units[-1]} }} }}")
        return "model { sequential { " + "\n".join(layers) + " } }"


class MobileNetV2:
    """MobileNetV2, which gets its images as rows of features."""

    size = 224
    feature_count = 3 * size ** 2
    example_count = 64

    def text(self):
        shape = [self.size, self.size, 3]
        return f"""model {{ sequential {{
  layers {{ reshape {{ target_shape: {shape} }} }}
  layers {{ model {{ application {{ mobilenet_v2 {{
    input_shape: {shape} classes: 10 classifier_activation: LINEAR
  }} }} }} }}
}} }}"""


MNIST = Network(784, (256, 256, 10))
LARGE = Network(1250, (1250,) * 8 + (10,))


@dataclasses.dataclass(frozen=True)
class Job:
    network: Network | MobileNetV2
    batch_size: int  # Global.
    step_count: int
    optimizer: str = "sgd"
    data_dir: str = ""  # The folder of MNIST. Empty: synthetic data.
    bytes_per_pack: int = 0
    sharded_state: str = "NONE"

    def text(self):
        source = (
            f'mnist {{ directory: "{self.data_dir}" }}' if self.data_dir else
            f"synthetic {{ example_count: {self.network.example_count}"
            f" class_count: 10 feature_count: {self.network.feature_count} }}"
            " cache: true")
        return f"""
{self.network.text()}
train {{ {source} repeat: true drop_remainder: true }}
batch_size: {self.batch_size}
epochs: 1
steps_per_epoch: {self.step_count}
optimizer {{ {self.optimizer} {{}} }}
loss {{ sparse_categorical_crossentropy {{ from_logits: true }} }}
strategy {{ multi_worker_mirrored {{
  thread_count: 1
  sharded_state: {self.sharded_state}
  communication {{ bytes_per_pack: {self.bytes_per_pack} }} }} }}
input {{ auto_shard_policy: DATA }}
seed: 1
"""


class Runner:
    """Trains jobs, each with new processes."""

    def __init__(self, bin_dir, realtime):
        self._bin_dir = pathlib.Path(bin_dir)
        self._realtime = realtime

    def launch(self, job, workers, lane="shared memory", pin=False,
               watch=None):
        """Returns the content of summary.json.

        pin    worker i runs on core i only, from its first instruction
        watch  called repeatedly with the pids of the workers; needs a processor, so
               --realtime does not apply
        """
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            (folder / "bench.job").write_text(job.text(), encoding="utf-8")
            command = [
                *([] if watch else self._before_others(job)),
                self._bin_dir / "deploy/launch/launch",
                f"--workers={workers}", "--ps=0", *LANES[lane],
                f"--job={folder}/bench.job", f"--run_dir={folder}/run"]
            if pin:
                command.append(f"--bin_dir={self._write_pinned(folder)}")
            with open(folder / "log", "w+", encoding="utf-8") as log:
                process = subprocess.Popen(
                    command, stdout=log, stderr=log, start_new_session=True)
                _finish([process], lambda: watch and watch(
                    _children(process.pid)), log)
            return _summary(folder / "run")

    def apart(self, job):
        """Like launch() of one worker, twice at the same time, each pinned."""
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            (folder / "bench.job").write_text(job.text(), encoding="utf-8")
            with open(folder / "log", "w+", encoding="utf-8") as log:
                processes = [subprocess.Popen(
                    [*self._before_others(job), "taskset", "-c", str(index),
                     self._bin_dir / "worker/worker",
                     f"--job={folder}/bench.job",
                     f"--run_dir={folder}/run{index}"],
                    stdout=log, stderr=log, start_new_session=True)
                             for index in range(2)]
                _finish(processes, None, log)
            return [_summary(folder / f"run{index}") for index in range(2)]

    def between_namespaces(self, job):
        """Like launch() of two workers, each pinned and in its namespace."""
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            (folder / "bench.job").write_text(job.text(), encoding="utf-8")
            cluster = {"worker": [f"{host}:{PORT}" for host in HOSTS]}
            with open(folder / "log", "w+", encoding="utf-8") as log:
                processes = []
                for index, namespace in enumerate(NAMESPACES):
                    config = {"cluster": cluster,
                              "task": {"type": "worker", "index": index}}
                    processes.append(subprocess.Popen(
                        ["ip", "netns", "exec", namespace,
                         *self._before_others(job), "taskset", "-c", str(index),
                         self._bin_dir / "worker/worker",
                         f"--job={folder}/bench.job",
                         f"--run_dir={folder}/run{index}"],
                        env={**os.environ, "TF_CONFIG": json.dumps(config)},
                        stdout=log, stderr=log, start_new_session=True))
                _finish(processes, None, log)
            return _summary(folder / "run0")

    def _before_others(self, job):
        """The prefix of a command that runs with priority over all others."""
        if not self._realtime:
            return []
        if job.network != LARGE:
            return ["chrt", "--rr", "20"]
        # Threads of one real-time priority alternate every 100 ms, so the
        # communicating thread would wait for the computing one. With the shares
        # of a separate session they do not.
        return ["sh", "-c",
                'echo -20 > /proc/self/autogroup && exec "$@"', "sh"]

    def _write_pinned(self, folder):
        """Creates a folder with a `worker` that runs only on the core of its index."""
        script = folder / "bin" / "worker"
        script.parent.mkdir()
        script.write_text(
            "#!/bin/sh\n"
            "index=$(printf %s \"$TF_CONFIG\" |\n"
            "  sed -n 's/.*\"index\": *\\([0-9]*\\).*/\\1/p')\n"
            "exec taskset -c \"${index:-0}\" "
            f"'{self._bin_dir}/worker/worker' \"$@\"\n", encoding="utf-8")
        script.chmod(0o755)
        return script.parent


def _finish(processes, watch, log):
    """Waits for all processes. Ends all and raises if one fails or times out."""
    deadline_s = time.monotonic() + TIMEOUT_S
    try:
        while any(process.poll() is None for process in processes):
            if time.monotonic() > deadline_s:
                raise TimeoutError(f"not done after {TIMEOUT_S} s")
            if watch:
                watch()
            time.sleep(0.02)
        if any(process.returncode for process in processes):
            raise RuntimeError("a process failed")
    except BaseException as error:
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait()
        log.seek(0)
        error.add_note("".join(log.readlines()[-20:]))
        raise


def _summary(run_dir):
    return json.loads((run_dir / "summary.json").read_text(encoding="utf-8"))


def _children(pid):
    return [int(child) for child in subprocess.run(
        ["pgrep", "-P", str(pid)], capture_output=True, text=True,
        check=False).stdout.split()]


def step_ms(summary):
    return summary["worker_step_milliseconds"]["p50"]


def measure_step(runner, data_dir, figures):
    for optimizer in SLOTS:
        def job(replicas):
            return Job(MNIST, replicas * BATCH, 4000, optimizer, data_dir)

        def add(name, summary):
            figures[f"step, {optimizer}, {name}, ms"].append(step_ms(summary))
            figures[f"step, {optimizer}, {name}, p99, ms"].append(
                summary["worker_step_milliseconds"]["p99"])

        add("1 worker", runner.launch(job(1), workers=1))
        for lane in LANES:
            add(f"2 over {lane}", runner.launch(job(2), 2, lane))


def measure_efficiency(runner, name, job, figures):
    alone = step_ms(runner.launch(job, workers=1, pin=True))
    together = step_ms(runner.launch(job, workers=2, pin=True))
    figures[f"{name}, 1 worker, ms"].append(alone)
    figures[f"{name}, 2 workers, ms"].append(together)
    figures[f"{name}, efficiency"].append(alone / together / 2)
    return alone, together


def measure_scaling(runner, data_dir, figures):
    for batch_size in (128, 512):
        measure_efficiency(runner, f"scaling, global batch {batch_size}",
                           Job(MNIST, batch_size, 3000, "sgd", data_dir),
                           figures)


def measure_images(runner, figures):
    job = Job(MobileNetV2(), 32, 8)
    alone, together = measure_efficiency(runner, "images", job, figures)
    half = dataclasses.replace(job, batch_size=16)
    # The slower of the two, because synchronous workers wait for it.
    apart = max(map(step_ms, runner.apart(half)))
    figures["images, 2 independent, ms"].append(apart)
    figures["images, 2 independent, efficiency"].append(alone / apart / 2)
    figures["images, synchronous relative to independent"].append(apart / together)


class MemoryWatch:
    """The memory of the processes over time, in bytes."""

    def __init__(self):
        # Anonymous memory, and the process's share of shared memory.
        self.own = []
        self.resident = []  # Including the executable.

    def __call__(self, pids):
        for pid in pids:
            try:
                text = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text(
                    encoding="utf-8")
            except (FileNotFoundError, ProcessLookupError):
                continue  # The process has ended.
            kib = {key: int(value) for key, value in
                   re.findall(r"^(\w+):\s+(\d+) kB", text, re.MULTILINE)}
            if kib:
                self.own.append(1024 * (kib["Pss_Anon"] + kib["Pss_Shmem"]))
                self.resident.append(1024 * kib["Rss"])


def measure_memory(runner, figures):
    for title, network, steps in (("1 MB", MNIST, 2000), ("50 MB", LARGE, 20)):
        for optimizer, slots in SLOTS.items():
            model = network.parameter_count() * FLOAT_BYTES * (1 + slots)
            settings = {"1 worker": (1, "shared memory")}
            settings.update({f"2 over {lane}": (2, lane) for lane in LANES})
            for name, (workers, lane) in settings.items():
                watch = MemoryWatch()
                job = Job(network, workers * BATCH, steps, optimizer)
                runner.launch(job, workers, lane, watch=watch)
                name = f"memory, {title}, {optimizer}, {name}"
                # The median is that of the steps, not of the start-up.
                figures[f"{name}, additional, MiB"].append(
                    (statistics.median(watch.own) - model) / MIB)
                figures[f"{name}, maximum, MiB"].append(
                    (max(watch.own) - model) / MIB)
                figures[f"{name}, resident, MiB"].append(
                    statistics.median(watch.resident) / MIB)


def measure_overlap(name, alone_ms, train, figures):
    """Trains two workers with train(bytes_per_pack), which returns the summary."""
    after = step_ms(train(0))
    during = step_ms(train(OVERLAP_BYTES_PER_PACK))
    communication = after - alone_ms
    # Overlap can hide at most the shorter of the two.
    hideable = min(communication, alone_ms)
    figures[f"{name}, 1 worker, ms"].append(alone_ms)
    figures[f"{name}, one pack, ms"].append(after)
    figures[f"{name}, one pack per layer, ms"].append(during)
    figures[f"{name}, ideal, ms"].append(max(communication, alone_ms))
    figures[f"{name}, fraction of the ideal"].append((after - during) / hideable)


def measure_overlaps(runner, link_gbits, figures):
    def job(replicas, bytes_per_pack):
        return Job(LARGE, replicas * OVERLAP_BATCH, OVERLAP_STEPS,
                   bytes_per_pack=bytes_per_pack)

    alone_ms = step_ms(runner.launch(job(1, 0), workers=1, pin=True))
    measure_overlap(
        "overlap, this host", alone_ms,
        lambda size: runner.launch(job(2, size), 2, "raw sockets", pin=True),
        figures)
    if os.geteuid() != 0:
        return
    for gbits in link_gbits:
        with link(gbits):
            measure_overlap(
                f"overlap, {gbits:g} Gbit/s", alone_ms,
                lambda size: runner.between_namespaces(job(2, size)), figures)


def measure_sharded(runner, figures):
    workers = 4
    for lane in LANES:
        def train(sharded_state):
            return runner.launch(
                Job(LARGE, workers * BATCH, OVERLAP_STEPS, "adam",
                    sharded_state=sharded_state), workers, lane)

        whole, sharded = train("NONE"), train("OPTIMIZER")
        name = f"sharded, {lane}"
        if whole["weights_sha256"] != sharded["weights_sha256"]:
            raise RuntimeError(f"{name}: the weights differ")
        figures[f"{name}, whole, ms"].append(step_ms(whole))
        figures[f"{name}, ms"].append(step_ms(sharded))
        figures[f"{name}, relative step"].append(
            step_ms(sharded) / step_ms(whole))
        figures[f"{name}, relative state"].append(
            sharded["replica_state_bytes"] / whole["replica_state_bytes"])


@contextlib.contextmanager
def link(gbits):
    """Two namespaces connected by a link with this bandwidth in each direction."""

    def ip(*words, check=True):
        subprocess.run(["ip", *words], check=check, capture_output=not check)

    def remove():
        for namespace in NAMESPACES:
            ip("netns", "delete", namespace, check=False)

    remove()  # Leftovers of a killed run.
    try:
        for namespace in NAMESPACES:
            ip("netns", "add", namespace)
        ip("link", "add", "veth", "netns", NAMESPACES[0], "type", "veth",
           "peer", "name", "veth", "netns", NAMESPACES[1])
        for namespace, host in zip(NAMESPACES, HOSTS):
            inside = ("-n", namespace)
            ip(*inside, "address", "add", f"{host}/24", "dev", "veth")
            ip(*inside, "link", "set", "lo", "up")
            ip(*inside, "link", "set", "veth", "up")
            subprocess.run(
                ["tc", "-n", namespace, "qdisc", "add", "dev", "veth", "root",
                 "tbf", "rate", f"{gbits}gbit", "burst", "512kb", "latency",
                 "20ms"], check=True)
        yield
    finally:
        remove()


def budget_of(name):
    """Returns the target of a figure: the maximum or, for fractions, the minimum."""
    if name.startswith("step, sgd, 2 over shared memory, ms"):
        return STEP_BUDGET_MS
    if name == "images, efficiency":
        return IMAGES_EFFICIENCY_BUDGET
    if name.endswith("independent, efficiency"):
        return None
    if name.endswith("efficiency"):
        return EFFICIENCY_BUDGET
    if name.endswith("fraction of the ideal"):
        return OVERLAP_BUDGET
    if name.endswith("relative state"):
        return SHARDED_STATE_BUDGET
    if name.endswith("relative step"):
        return SHARDED_STEP_BUDGET
    return None


def print_table(figures):
    print(f"{'':58} {'median':>9} {'min':>9} {'max':>9} {'budget':>7} "
          f"{'ratio':>6}")
    for name, values in figures.items():
        median, budget = statistics.median(values), budget_of(name)
        line = f"{name:58} {median:9.3f} {min(values):9.3f} {max(values):9.3f}"
        if budget:
            line += f" {budget:7} {median / budget:6.2f}"
        print(line)


class Figures(dict):
    """Lists by name, in the order of the first access."""

    def __missing__(self, name):
        return self.setdefault(name, [])


def main():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    test_data = os.environ.get("MUSTER_TEST_DATA")
    parser.add_argument(
        "--data_dir", default=f"{test_data}/mnist" if test_data else "",
        help="where MNIST's IDX files are")
    parser.add_argument("--bin_dir", default=ROOT / "bazel-bin")
    parser.add_argument("--launches", type=int, default=5)
    parser.add_argument("--realtime", action="store_true")
    parser.add_argument("--link_gbits", type=float, nargs="*", default=[5, 2.5])
    kinds = ["step", "scaling", "images", "memory", "overlap", "sharded"]
    parser.add_argument("--only", nargs="+", choices=kinds, default=kinds)
    arguments = parser.parse_args()
    if not arguments.data_dir and {"step", "scaling"} & set(arguments.only):
        parser.error("step and scaling need --data_dir")
    # When terminated, ends its child processes.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("terminated"))
    runner = Runner(arguments.bin_dir, arguments.realtime)
    figures = Figures()
    print("load average before:", *os.getloadavg())
    for _ in range(arguments.launches):
        if "step" in arguments.only:
            measure_step(runner, arguments.data_dir, figures)
        if "scaling" in arguments.only:
            measure_scaling(runner, arguments.data_dir, figures)
        if "images" in arguments.only:
            measure_images(runner, figures)
        if "memory" in arguments.only:
            measure_memory(runner, figures)
        if "overlap" in arguments.only:
            measure_overlaps(runner, arguments.link_gbits, figures)
        if "sharded" in arguments.only:
            measure_sharded(runner, figures)
    print_table(figures)
    print("load average after:", *os.getloadavg())


if __name__ == "__main__":
    main()
