"""Takes turns with others: a step for each line that comes in.

A process says "ready" when it is warm. It then runs a step for each "step" that it
reads, and answers with how many milliseconds that took; at the end of its input, with
the most memory that it ever had.
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
