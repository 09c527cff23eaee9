"""Prints the registers of each device kernel, and fails if one spills them.

    resources_test.py FILE.resources...

The files hold what ptxas -v says; they are empty if the build was not for GPUs.
"""

import os
import re
import sys

ENTRY = re.compile(r"Compiling entry function '(\w+)' for '(\w+)'")
SPILLS = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
USED = re.compile(r"Used (\d+) registers(.*)")


def kernels(text):
    """Yields (kernel, architecture, spilled bytes, registers, other resources)."""
    name = architecture = None
    spilled = 0
    for line in text.splitlines():
        entry, spills, used = (p.search(line) for p in (ENTRY, SPILLS, USED))
        if entry:
            name, architecture = entry.groups()
            spilled = 0
        elif spills:
            # Includes the functions that the kernel calls.
            spilled += int(spills.group(2)) + int(spills.group(3))
        elif used:
            yield name, architecture, spilled, int(used.group(1)), used.group(2).strip(", ")


def main(paths):
    texts = {}
    for path in paths:
        with open(path, encoding="utf-8") as file:
            texts[path] = file.read()
    if not paths:
        sys.exit("no files of resources")
    if not any(texts.values()):
        print("skipped: the build is not for GPUs (--config=device_code)")
        return
    failures = []
    for path, text in sorted(texts.items()):
        found = list(kernels(text))
        if not found:
            failures.append(f"{path}: ptxas named no kernel")
        for name, architecture, spilled, registers, other in found:
            print(f"{os.path.basename(path):24} {name:24} {architecture}  "
                  f"{registers:3} registers  {spilled} bytes spilled  {other}")
            if spilled:
                failures.append(f"{name} spills {spilled} bytes on {architecture}: use fewer "
                                "live values, or smaller blocks with __launch_bounds__")
    if failures:
        sys.exit("\n".join(failures))


if __name__ == "__main__":
    main(sys.argv[1:])
