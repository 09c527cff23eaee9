"""Benchmarks that run steps of Muster and of its peers alternately.

Each of them is one process. All are warmed up before the first round. In each round, every
process runs one step while the others wait, so that other load affects all of them.
"""

import pathlib
import statistics
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[1]
PEERS = ROOT / "bench" / "peers"


class Runner:
    """A process that runs a step on request."""

    def __init__(self, name, command, realtime):
        self.name = name
        prefix = ["chrt", "--rr", "20"] if realtime else []
        self._process = subprocess.Popen(
            prefix + command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            cwd=PEERS,
        )
        self.samples_ms = []

    def wait_until_warm(self):
        for line in self._process.stdout:
            if line.strip() == "ready":
                return
        raise RuntimeError(f"{self.name} ended before it was ready")

    def step(self):
        self._process.stdin.write("step\n")
        self._process.stdin.flush()
        self.samples_ms.append(float(self._process.stdout.readline()))

    def finish(self):
        """Returns the peak memory in MiB."""
        self._process.stdin.close()
        peak_mib = float(self._process.stdout.readline())
        self._process.wait(timeout=60)
        return peak_mib


def measure(title, commands, rounds, realtime=False):
    """Prints a line for each of `commands`, of which the first is Muster's.

    A line has the median step and the peak memory of the process; ratios are medians over
    the rounds of the peer's time divided by Muster's. `realtime` gives the measured
    processes priority over all others.
    """
    runners = []
    for name, command in commands.items():
        runners.append(Runner(name, command, realtime))
        # Warms up one process after another, because they would slow each other down.
        runners[-1].wait_until_warm()
    for _ in range(rounds):
        for runner in runners:
            runner.step()
    ours = runners[0].samples_ms
    for runner in runners:
        ratios = [theirs / mine for theirs, mine in zip(runner.samples_ms, ours)]
        print(
            f"{title:8} {runner.name:16} {statistics.median(runner.samples_ms):8.1f} ms"
            f"  min {min(runner.samples_ms):8.1f}  peak {runner.finish():7.0f} MiB"
            f"  ratio {statistics.median(ratios):5.2f}"
            f" ({min(ratios):.2f} to {max(ratios):.2f})",
            flush=True,
        )
