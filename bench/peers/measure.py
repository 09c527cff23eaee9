"""Timing of the peers, and the format of their results."""

import json
import math
import signal
import statistics
import time


def limit_seconds(seconds):
    """Ends this process and its children after a timeout, whatever it is doing.

    The alarm has no handler: Python cannot run one while the process is blocked in a call
    into C++, but the default action works.
    """
    signal.alarm(seconds)


def seconds_of(action, count, warmup=3):
    """Returns the times of `count` calls, after some warm-up calls."""
    for _ in range(warmup):
        action()
    return [_timed(action) for _ in range(count)]


def in_runs(samples, run_count=5):
    """Returns the medians of `run_count` consecutive parts of the samples."""
    size = len(samples) // run_count
    return [statistics.median(samples[i * size : (i + 1) * size]) for i in range(run_count)]


def report(bench, peer, unit, runs, samples=None):
    """Prints one line of JSON.

    `runs` are the results of repetitions and `median` is their median. p50 and p99 are those
    of `samples`, single operations, if there are any, and of the runs otherwise.
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
