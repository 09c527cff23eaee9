#!/usr/bin/env python3
"""Runs what is too long for every change, as much of it as fits into one night.

    tests/night/night.py --hours=8
    tests/night/night.py --hours=1 --only=fuzz: --fuzz_minutes=2
    tests/night/night.py --list

Steps are the tests of each folder under AddressSanitizer with UBSan (asan:FOLDER) and
under ThreadSanitizer (tsan:FOLDER), and each fuzz target for --fuzz_minutes (fuzz:NAME).
The one that has not run for the longest time comes first, so several nights get round to
all of them, and a night that was ended is continued by the next. docs/night.md has a row
for each step: when it ran last, on which commit, and what came out. Commit that file.

Ends with 1 if a step of this night failed. Logs are kept in ~/.cache/muster/night.
"""

import argparse
import datetime
import os
import re
import signal
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
RECORD = os.path.join(ROOT, "docs", "night.md")
LOGS = os.path.expanduser("~/.cache/muster/night")
CORPUS = os.path.expanduser("~/.cache/muster/fuzz")
SANITIZERS = ("asan", "tsan")
ROW = re.compile(r"^\| (\w+:\S+) \| ([\d-]+) \| ([\w-]+) \| (.*) \|$", re.MULTILINE)
FUZZ_TARGET = re.compile(r'\{"(\w+)", Run')
NEVER = "-"


def folders():
    """Returns the folders whose tests are one step each: rooms of the tree, and the floors of
    common/."""
    builds = subprocess.run(["git", "ls-files", "*/BUILD.bazel"], cwd=ROOT, check=True,
                            capture_output=True, text=True).stdout.split()
    found = set()
    for path in builds:
        parts = path.split("/")[:-1]
        with open(os.path.join(ROOT, path), encoding="utf-8") as file:
            if "muster_tests(" in file.read():
                found.add("/".join(parts[:2 if parts[0] in ("common", "tests") else 1]))
    return sorted(found)


def fuzz_targets():
    names = set()
    for kind in ("file", "text", "wire"):
        with open(os.path.join(ROOT, f"tests/fuzz/{kind}_targets.cc"), encoding="utf-8") as file:
            names.update(FUZZ_TARGET.findall(file.read()))
    return sorted(names)


def all_steps():
    steps = [f"{sanitizer}:{folder}" for sanitizer in SANITIZERS for folder in folders()]
    return steps + [f"fuzz:{name}" for name in fuzz_targets()]


def read_record(text):
    """Returns {step: (date, commit, result)}."""
    return {step: (date, commit, result) for step, date, commit, result in ROW.findall(text)}


def write_record(text, steps, rows):
    """Returns the text with one row for each existing step."""
    head = text.split("\n| step |")[0].rstrip("\n")
    lines = [head, "", "| step | last run | commit | result |", "| --- | --- | --- | --- |"]
    for step in steps:
        lines.append("| " + " | ".join((step, *rows.get(step, (NEVER, NEVER, "not recorded")))) +
                     " |")
    return "\n".join(lines) + "\n"


def save(text, steps, rows):
    with open(RECORD, "w", encoding="utf-8") as file:
        file.write(write_record(text, steps, rows))


def in_order(steps, rows):
    """Returns the steps that never ran, followed by the others, the oldest run first."""
    return sorted(steps, key=lambda step: rows.get(step, ("", "", ""))[0].replace(NEVER, ""))


def run(command, log, seconds):
    """Returns (status, output). The status is None if the command did not end in time."""
    with open(log, "w", encoding="utf-8") as file:
        process = subprocess.Popen(command, cwd=ROOT, stdout=file, stderr=subprocess.STDOUT,
                                   stdin=subprocess.DEVNULL, start_new_session=True)
        try:
            status = process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGINT)
            try:
                process.wait(timeout=60)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            status = None
    with open(log, encoding="utf-8", errors="replace") as file:
        return status, file.read()


def result_of_tests(status, output):
    """Returns (whether the tests passed, the result to record)."""
    count = re.findall(r"^\d+ passed, \d+ failed.*$", output, re.MULTILINE)
    if status is None or not count:
        return False, "did not end in time" if status is None else "did not come to a count"
    return status == 0, count[-1]


def result_of_fuzzing(status, output):
    done = re.findall(r"^Done (\d+) runs in (\d+) second", output, re.MULTILINE)
    crash = re.findall(r"Test unit written to \S*?((?:crash|timeout|oom|leak)-\w+)", output)
    if crash:
        return False, f"found {crash[-1]}"
    if status != 0 or not done:
        return False, "did not end in time" if status is None else f"status {status}"
    return True, f"{int(done[-1][0]):,} inputs in {done[-1][1]} s, no crash"


def run_step(step, arguments, seconds):
    kind, _, name = step.partition(":")
    log = os.path.join(LOGS, step.replace(":", "_").replace("/", "_") + ".log")
    if kind == "fuzz":
        corpus = os.path.join(CORPUS, name)
        command = ["tests/fuzz/run.sh", name, str(int(arguments.fuzz_minutes * 60)), corpus]
        passed, result = result_of_fuzzing(*run(command, log, seconds))
    else:
        command = ["./test.sh", f"--config={kind}", *arguments.bazel, f"//{name}/..."]
        passed, result = result_of_tests(*run(command, log, seconds))
    return passed, result, log


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hours", type=float, default=8, help="the budget of this night")
    parser.add_argument("--fuzz_minutes", type=float, default=10, help="for each fuzz target")
    parser.add_argument("--only", default="", metavar="BEGIN",
                        help="only steps whose names begin so, such as asan:common/io")
    parser.add_argument("--list", action="store_true", help="prints the steps in their order")
    parser.add_argument("--rewrite", action="store_true",
                        help="writes the table for the steps that there are, and runs none")
    parser.add_argument("--bazel", action="append", default=[], metavar="FLAG",
                        help="an option for Bazel, such as --bazel=--jobs=1")
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    deadline = time.monotonic() + arguments.hours * 3600
    steps = all_steps()
    with open(RECORD, encoding="utf-8") as file:
        text = file.read()
    rows = read_record(text)
    chosen = [step for step in in_order(steps, rows) if step.startswith(arguments.only)]
    if not chosen:
        sys.exit(f"--only={arguments.only}: no step begins so; --list prints them")
    if arguments.list:
        print("\n".join(chosen))
        return 0
    if arguments.rewrite:
        save(text, steps, rows)
        return 0
    os.makedirs(LOGS, exist_ok=True)
    failed = 0
    for step in chosen:
        seconds = deadline - time.monotonic()
        if seconds < arguments.fuzz_minutes * 60:
            print("the night is over")
            break
        commit = subprocess.run(["git", "rev-parse", "--short=8", "HEAD"], cwd=ROOT, check=True,
                                capture_output=True, text=True).stdout.strip()
        passed, result, log = run_step(step, arguments, seconds)
        failed += not passed
        print(f"{step}: {result}" + ("" if passed else f"; see {log}"), flush=True)
        rows[step] = (datetime.date.today().isoformat(), commit, result)
        # Saved after each step, so that results survive if this process is ended.
        save(text, steps, rows)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
