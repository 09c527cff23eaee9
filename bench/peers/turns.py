"""Runs a step for each line of input, so that processes can alternate.

A process prints "ready" when it is warmed up. It then runs a step for each "step" that it
reads, and prints its time in milliseconds. At the end of its input it prints its peak
memory.
"""

import resource
import sys
import time

WARMUP = 3
KIB = 1024


def take_turns(step):
    for _ in range(WARMUP):
        step()
    _say("ready")
    for line in sys.stdin:
        if line.strip() != "step":
            break
        start = time.perf_counter()
        step()
        _say(f"{1e3 * (time.perf_counter() - start):.3f}")
    peak_bytes = KIB * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    _say(f"{peak_bytes / 2**20:.1f}")


def _say(text):
    print(text, flush=True)
