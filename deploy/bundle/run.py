#!/usr/bin/env python3
"""Shows what Muster does on the GPU of this machine.

Is it right, how fast is it, and how fast are PyTorch and JAX, where they are
installed? Takes up to nine minutes. Prints the end of each part's output, and a
table. The exit status is 1 if a part failed.
"""

import argparse
import json
import os
import platform
import re
import signal
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.realpath(__file__))
PEER_PACKAGES = ("torch", "jax", "nvidia-nccl-cu13", "nvidia-cudnn-cu13")
# Largest difference of a metric between CPU and GPU, which add float32 in different orders.
TOLERANCE = 1e-3
LINES_SHOWN = 30
# MODEL:PRECISION:BATCH
MODELS = ("mlp:float32:64", "mobilenet_v2:float32:256", "mobilenet_v2:tensor_float_32:256",
          "mobilenet_v2:mixed_bfloat16:256", "transformer:mixed_bfloat16:32",
          "causal_transformer:mixed_bfloat16:32")


class PartFailed(Exception):
    """A part of the run; the message says why."""


class Run:

    def __init__(self, simulated, folder, logs, patience=1):
        self.simulated = simulated
        self.patience = patience
        self.folder = folder
        self.logs = logs
        self.environ = dict(os.environ)
        # CUDA's libraries are also found among the packages of this Python.
        self.environ.setdefault("VIRTUAL_ENV", sys.prefix)
        self.environ["MUSTER_TEST_GPU"] = "simulated" if simulated else "real"
        # The bundle's libraries come first, then the driver and CUDA's libraries.
        inherited = self.environ.get("LD_LIBRARY_PATH")
        self.environ["LD_LIBRARY_PATH"] = os.pathsep.join(
            [os.path.join(ROOT, "lib")] + ([inherited] if inherited else []))

    def command(self, arguments, seconds, cwd=ROOT):
        """Returns what the command prints. Ends it, and its children, when time is up."""
        seconds *= self.patience
        process = subprocess.Popen(arguments, cwd=cwd, env=self.environ, text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                   start_new_session=True)
        try:
            output, _ = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            output, _ = process.communicate()
            self.log(arguments, output)
            show(output)
            raise PartFailed(f"{arguments[0]}: not done in {seconds} s") from None
        self.log(arguments, output)
        if process.returncode != 0:
            show(output)
            raise PartFailed(f"{arguments[0]}: status {process.returncode}")
        return output

    def log(self, arguments, output):
        if self.logs is not None:
            print("$", *arguments, file=self.logs)
            print(output, file=self.logs, flush=True)

    def parts(self):
        """Returns functions by name, in the order in which they run."""
        driver = "*/AtWait" if self.simulated else "*/Real"
        parts = {
            "machine": self.machine,
            "device conformance":
                lambda: self.conformance("device_conformance_test", driver, 60),
            # Steps captured as CUDA graphs. The excluded cases need a simulated driver.
            "graph conformance": lambda: self.conformance(
                "step_graphs_test",
                f"{driver}-*SteadyStep*:*DriverRefuses*:*AnErrorOfAKernel*", 60),
            "kernel conformance": lambda: self.conformance("kernels_on_gpu_test", "*", 60),
            "training conformance": lambda: self.conformance("device_training_test", "*", 90),
            # Compares the bits of steps with and without graphs.
            "graph training": lambda: self.conformance("device_graphs_test", "*", 90),
            "NCCL": lambda: self.conformance("nccl_process_test", "-*Expires*", 60),
            "accuracy": self.accuracy,
            "benchmark": self.benchmark,
        }
        if not self.simulated:
            parts["models"] = self.models
            parts["peers"] = self.peers
            parts["compiled peers"] = self.compiled_peers
        return parts

    def machine(self):
        print(platform.platform(), *platform.libc_ver(), f"{os.cpu_count()} processors")
        if not self.simulated:
            show(self.command(["nvidia-smi", "--format=csv", "--query-gpu=name,driver_version,"
                               "memory.total,clocks.max.sm"], 20))
        for package in PEER_PACKAGES:
            found = subprocess.run(
                ["python3", "-c", "import importlib.metadata as m, sys; "
                 "print(m.version(sys.argv[1]))", package], capture_output=True, text=True)
            print(f"{package}: {found.stdout.strip() or 'not installed'}")

    def conformance(self, test, on_gpu, seconds):
        """Runs a test. `on_gpu` selects the cases, which skip themselves without a GPU."""
        output = self.command([f"tests/{test}", f"--gtest_filter={on_gpu}"], seconds)
        show(output)
        passed = re.search(r"PASSED  \] (\d+) test", output)
        if "SKIPPED" in output or passed is None or passed[1] == "0":
            raise PartFailed(f"{test}: the GPU was not used")

    def train_on(self, device):
        run_dir = os.path.join(self.folder, device)
        options = ["--gpu_simulated=1"] if self.simulated else []
        self.command(["bin/coordinator", "--job=digits.job", f"--run_dir={run_dir}",
                      "--set", f"device={device}"] + options, 60)
        with open(os.path.join(run_dir, "summary.json"), encoding="utf-8") as file:
            return json.load(file)["final"]

    def accuracy(self):
        cpu, gpu = self.train_on("cpu:0"), self.train_on("gpu:0")
        for name in sorted(cpu):
            difference = abs(cpu[name] - gpu[name])
            print(f"{name}: {cpu[name]:.6f} on the CPU, {gpu[name]:.6f} on the GPU")
            if difference > TOLERANCE:
                raise PartFailed(f"{name} differs by {difference:.2g}, more than {TOLERANCE}")

    def measured(self, arguments, seconds, cwd=ROOT):
        """Returns the JSON objects of a benchmark's output."""
        output = self.command(arguments, seconds, cwd)
        show(output)
        return [json.loads(line) for line in output.splitlines() if line.startswith("{")]

    def benchmark(self):
        options = ["--simulated"] if self.simulated else []
        return (self.measured(["bin/gpu_benchmark"] + options, 100) +
                self.measured(["bin/gpu_all_reduce_benchmark"] + options, 60))

    def models(self):
        results = []
        for model in MODELS:
            for options in ([], ["--gpu_graphs"]):
                results += self.measured(
                    ["bin/gpu_model_benchmark"] + model.split(":") + options, 60)
        return results

    def peers(self):
        folder = os.path.join(ROOT, "peers")
        results = self.measured(["python3", "-B", "torch_gpu.py", "--limit_seconds=115"], 120,
                                folder)
        return results + self.measured(
            ["python3", "-B", "torch_gpu_models.py", "--limit_seconds=115", *MODELS], 120,
            folder)


    def compiled_peers(self):
        """Measures the models with torch.compile, the last one first, until time is up."""
        deadline = time.monotonic() + 150
        results = []
        for model in reversed(MODELS):
            seconds = int(deadline - time.monotonic())
            try:
                results += self.measured(
                    ["python3", "-B", "torch_gpu_models.py", f"--limit_seconds={seconds}",
                     "--modes=compile", model], seconds + 5, os.path.join(ROOT, "peers"))
            except PartFailed as error:
                print(f"{model} is left out: {error}")
            if time.monotonic() + 20 > deadline:
                break
        return results


def show(output):
    print("\n".join(output.splitlines()[-LINES_SHOWN:]), flush=True)


def is_better(unit, one, other):
    return one < other if unit == "us" else one > other


def best_of(unit, peers, bench):
    best = None
    for peer in peers:
        if peer["bench"] == bench and (
                best is None or is_better(unit, peer["median"], best["median"])):
            best = peer
    return best


def table(ours, peers):
    """Returns lines of Markdown. A ratio above 1 means that Muster is faster."""
    lines = ["| measured | Muster | best peer | ratio | budget |",
             "| --- | --- | --- | --- | --- |"]
    for row in ours:
        unit, value = row["unit"], row["median"]
        best = best_of(unit, peers, row["bench"])
        # A step with graphs is compared with the peers' best result, with or without graphs.
        best = best or best_of(unit, peers, row["bench"].removesuffix(".graphs"))
        peer_text = ratio = "-"
        if best:
            peer_text = f"{best['median']:.4g} {unit} ({best['peer']})"
            quotient = best["median"] / value
            ratio = f"{quotient if unit == 'us' else 1 / quotient:.2f}"
        budget = "-"
        if "of_copy" in row:
            budget = f"{row['of_copy']:.2f} of the copy; {row['budget']}"
        elif "of_limit" in row:
            budget = f"{row['of_limit']:.2f} of the limit; {row['budget']}"
        elif "budget" in row:
            budget = f"{row['budget']} {unit}"
        lines.append(f"| {row['bench']} | {value:.4g} {unit} | {peer_text} | {ratio} | {budget} |")
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--simulated", action="store_true",
                        help="a simulated GPU: shows that the bundle is complete")
    parser.add_argument("--part", action="append", metavar="NAME",
                        help="only this part, and others so named")
    parser.add_argument("--patience", type=int, default=1, metavar="FACTOR",
                        help="multiplies the time that each program may take, for a busy machine")
    parser.add_argument("--log", metavar="FILE", type=argparse.FileType("w"),
                        help="the whole output of each program")
    arguments = parser.parse_args()
    failed = []
    results = {}
    with tempfile.TemporaryDirectory() as folder:
        parts = Run(arguments.simulated, folder, arguments.log, arguments.patience).parts()
        for name in arguments.part or []:
            if name not in parts:
                parser.error(f"there is no part {name!r}; there are {', '.join(parts)}")
        for name in arguments.part or parts:
            print(f"\n== {name}", flush=True)
            begin = time.monotonic()
            try:
                results[name] = parts[name]()
            except (PartFailed, OSError) as error:
                print(f"failed: {error}")
                failed.append(name)
            print(f"{name}: {time.monotonic() - begin:.1f} s", flush=True)
    print("\n== table")
    ours = (results.get("benchmark") or []) + (results.get("models") or [])
    peers = (results.get("peers") or []) + (results.get("compiled peers") or [])
    print("\n".join(table(ours, peers)))
    print(f"failed: {', '.join(failed)}" if failed else "all parts passed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
