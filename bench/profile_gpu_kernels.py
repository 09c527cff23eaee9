#!/usr/bin/env python3
"""Prints how long each kernel of a GPU runs in a program, by NVIDIA's profiler ncu.

    bench/profile_gpu_kernels.py --skip=3000 --count=2000 -- \\
        gpu_model_benchmark mobilenet_v2 mixed_bfloat16 256

The profiler runs kernels one after another, so gaps between kernels do not show. Kernels of
the first steps choose algorithms and fill caches: skip them. With --bytes, kernels run more
than once, and what they overwrite is saved and restored: for small models only.
"""

import argparse
import collections
import csv
import re
import shutil
import subprocess
import sys

TIME = "gpu__time_duration.sum"
BYTES = "dram__bytes.sum"


def short(name):
    """Returns the name without the arguments of templates and functions."""
    return re.sub(r"\(.*$", "", re.sub(r"<.*>", "<>", name.replace("(anonymous namespace)", "")))


def number(row):
    value = float(row["Metric Value"].replace(",", ""))
    return value / 1000 if row["Metric Unit"] in ("ns", "nsecond") else value


def rows_of(text):
    """Returns the rows of ncu's CSV, which follows the output of the program."""
    lines = text.splitlines()
    begin = next((i for i, line in enumerate(lines) if line.startswith('"ID"')), None)
    return [] if begin is None else list(csv.DictReader(lines[begin:]))


def by_kernel(rows):
    kernels = collections.defaultdict(lambda: collections.defaultdict(float))
    for row in rows:
        kernel = kernels[short(row["Kernel Name"])]
        if row["Metric Name"] == BYTES:
            kernel["bytes"] += number(row)
        elif row["Metric Name"] == TIME:
            kernel["us"] += number(row)
            kernel["count"] += 1
    return kernels


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--skip", type=int, default=0, help="kernels to skip")
    parser.add_argument("--count", type=int, default=200, help="kernels to measure")
    parser.add_argument("--lines", type=int, default=25, help="kernels to print")
    parser.add_argument("--seconds", type=int, default=120, help="limit of the run")
    parser.add_argument("--bytes", action="store_true", help="also the bytes of memory moved")
    parser.add_argument("command", nargs="+")
    arguments = parser.parse_args()
    if shutil.which("ncu") is None:
        sys.exit("ncu is not installed: it is part of NVIDIA Nsight Compute")
    metrics = f"{TIME},{BYTES}" if arguments.bytes else TIME
    run = subprocess.run(
        ["ncu", "--csv", "--print-units", "base", "--clock-control", "none",
         "--metrics", metrics, "--launch-skip", str(arguments.skip),
         "--launch-count", str(arguments.count), "--kill", "yes"] + arguments.command,
        capture_output=True, text=True, timeout=arguments.seconds)
    kernels = by_kernel(rows_of(run.stdout))
    if not kernels:
        sys.exit(f"ncu measured no kernel:\n{run.stdout[-2000:]}{run.stderr[-2000:]}")
    total = sum(kernel["us"] for kernel in kernels.values())
    print(f"{sum(kernel['count'] for kernel in kernels.values()):.0f} kernels, {total:.0f} us")
    print("   share     us  count  us each   GB/s  kernel")
    ordered = sorted(kernels.items(), key=lambda item: -item[1]["us"])
    for name, kernel in ordered[:arguments.lines]:
        print(f"{100 * kernel['us'] / total:7.1f}% {kernel['us']:6.0f} {kernel['count']:6.0f} "
              f"{kernel['us'] / kernel['count']:8.1f} {kernel['bytes'] / kernel['us'] / 1e3:6.0f}"
              f"  {name[:70]}")


if __name__ == "__main__":
    main()
