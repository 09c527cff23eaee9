"""How a peer is timed and how its numbers are reported."""

import json
import math
import signal
import statistics
import time


def limit_seconds(seconds):
    """Ends this process after so long, whatever it is doing, and its children with it.

    The alarm has no handler: Python could not run one while the process hangs inside a
    call into C++, where its default action needs no Python.
    """
    signal.alarm(seconds)


def seconds_of(action, count, warmup=3):
    """How long each of `count` calls takes, after some that do not count."""
    for _ in range(warmup):
        action()
    return [_timed(action) for _ in range(count)]


def in_runs(samples, run_count=5):
    """The medians of `run_count` consecutive parts of the samples."""
    size = len(samples) // run_count
    return [statistics.median(samples[i * size : (i + 1) * size]) for i in range(run_count)]


def report(bench, peer, unit, runs, samples=None):
    """Prints one line of JSON.

    `runs` are the results of repetitions and `median` is theirs. p50 and p99 are those
    of `samples`, single operations, where there are any, and of the runs otherwise.
    """
    ordered = sorted(samples or runs)
    line = {
        "bench": bench,
        "peer": peer,
        "unit": unit,
        "median": _rounded(statistics.median(runs)),
        "p50": _rounded(statistics.median(ordered)),
        "p99": _rounded(ordered[math.ceil(0.99 * len(ordered)) - 1]),
        "runs": [_rounded(value) for value in runs],
    }
    print(json.dumps(line), flush=True)


def _timed(action):
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def _rounded(value):
    return float(f"{value:.4g}")
