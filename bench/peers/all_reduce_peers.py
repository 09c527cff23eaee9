#!/usr/bin/env python3
"""All-reduce on one host: Muster's shared memory, OpenMPI and gloo, interleaved.

    apt-get install libopenmpi-dev openmpi-bin libgloo-dev
    bazel build //bench:all_reduce_benchmark
    bench/peers/all_reduce_peers.py --launches 5

Compiles the two peers into a temporary folder. A launch is one process group of each, one
after the other, so that other load affects all of them. For every size it prints the median
over launches of each launch's median, the minimum of all calls, and the ratios of the peers'
times to Muster's for both.
"""

import argparse
import collections
import os
import pathlib
import statistics
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
KIB = 1024
COMPILE = {
    "mpi_all_reduce": ["mpicxx"],
    "gloo_all_reduce": ["g++"],
}
LIBRARIES = {"mpi_all_reduce": [], "gloo_all_reduce": ["-lgloo", "-lpthread"]}


def compile_peers(folder):
    for name, compiler in COMPILE.items():
        source = ROOT / "bench" / "peers" / f"{name}.cc"
        subprocess.run(
            compiler
            + ["-O2", "-std=c++20", "-I", ROOT, "-o", folder / name, source]
            + LIBRARIES[name],
            check=True,
        )


def commands(arguments, folder, ranks):
    low, high = str(arguments.min_bytes), str(arguments.max_bytes)
    ours = [arguments.benchmark, f"--ranks={ranks}", f"--min_bytes={low}", f"--max_bytes={high}"]
    # OpenMPI binds ranks to cores if there are enough. Muster and the gloo benchmark pin
    # their ranks themselves.
    mpi = ["mpirun", "--oversubscribe", "-np", str(ranks), folder / "mpi_all_reduce", low, high]
    store = tempfile.mkdtemp(dir=folder)
    gloo = [folder / "gloo_all_reduce", str(ranks), low]
    gloo += [str(min(arguments.max_bytes, arguments.gloo_max_bytes)), store]
    return [ours, mpi, gloo]


def run(command, results):
    environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    process = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=1800)
    if process.returncode != 0:
        raise RuntimeError(f"{command[0]} failed:\n{process.stderr}")
    for line in process.stdout.splitlines():
        name, _, size, median, p99, least = line.split()
        results[int(size), name].append((float(median), float(p99), float(least)))


def size_text(size):
    return f"{size // KIB} KiB" if size < KIB * KIB else f"{size // KIB // KIB} MiB"


def print_table(ranks, results):
    names = sorted({name for _, name in results})
    print(f"\n{ranks} ranks; microseconds: median (p99) [minimum]; bus bandwidth of the median\n")
    for size in sorted({size for size, _ in results}):
        summary = {}
        for name in names:
            runs = results.get((size, name))
            if runs:
                median, p99 = (statistics.median(run[i] for run in runs) for i in (0, 1))
                summary[name] = (median, p99, min(run[2] for run in runs))
        for name, (median, p99, least) in summary.items():
            bandwidth = 2 * (ranks - 1) / ranks * size / median / 1000
            ratios = ", ".join(
                f"{peer} {summary[peer][0] / median:.1f}x [{summary[peer][2] / least:.1f}x]"
                for peer in ("openmpi", "gloo")
                if name.startswith("muster") and peer in summary
            )
            times = f"{median:10.2f} ({p99:10.2f}) [{least:10.2f}]"
            print(f"{size_text(size):>8}  {name:28}{times} {bandwidth:7.2f} GB/s  {ratios}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    default = ROOT / "bazel-bin" / "bench" / "all_reduce_benchmark"
    parser.add_argument("--benchmark", default=default, help="our binary")
    parser.add_argument("--ranks", type=int, nargs="+", default=[2, 4])
    parser.add_argument("--launches", type=int, default=5)
    parser.add_argument("--min_bytes", type=int, default=KIB)
    parser.add_argument("--max_bytes", type=int, default=256 * KIB * KIB)
    parser.add_argument("--gloo_max_bytes", type=int, default=256 * KIB * KIB)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        compile_peers(folder)
        for ranks in arguments.ranks:
            results = collections.defaultdict(list)
            for _ in range(arguments.launches):
                for command in commands(arguments, folder, ranks):
                    run(command, results)
            print_table(ranks, results)


if __name__ == "__main__":
    main()
