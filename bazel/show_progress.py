"""Shows the progress of Bazel in one line.

  bazel build --curses=no --color=no TARGET... 2>&1 | show_progress.py

On a terminal the line is overwritten by each update. Otherwise a line is written once a
minute. Errors and warnings are shown at once; other output of Bazel is omitted.
"""

import re
import sys
import time

PROGRESS = re.compile(r"^\[([\d,]+) / ([\d,]+)\]")
NOISE = re.compile(r"^(INFO|Loading|Analyzing|Computing|DEBUG|Starting local|Target|  bazel-bin/|"
                   r"\$TEST_TMPDIR|    currently loading|Extracting|Build completed successfully)|"
                   r"^\s*$")
SECONDS_BETWEEN_LINES = 60


def minutes(seconds):
    return f"{int(seconds) // 60}:{int(seconds) % 60:02}"


class ProgressLine:

    def __init__(self, output, is_terminal, now):
        self._output = output
        self._is_terminal = is_terminal
        self._now = now
        self._begin = now()
        self._last = self._begin - SECONDS_BETWEEN_LINES if is_terminal else self._begin
        self._is_open = False

    def take(self, line):
        match = PROGRESS.match(line)
        if match:
            done, total = (int(number.replace(",", "")) for number in match.groups())
            self._show(done, total)
        elif not NOISE.match(line):
            self.close()
            print(line, file=self._output, flush=True)

    def _show(self, done, total):
        # The total grows while Bazel finds more work.
        text = (f"built {done:,} of {total:,} parts, {100 * done // max(total, 1)}%, "
                f"after {minutes(self._now() - self._begin)} min")
        if self._is_terminal:
            print(f"\r\033[K{text}", end="", file=self._output, flush=True)
            self._is_open = True
        elif self._now() - self._last >= SECONDS_BETWEEN_LINES:
            self._last = self._now()
            print(text, file=self._output, flush=True)

    def close(self):
        if self._is_open:
            print(file=self._output, flush=True)
        self._is_open = False


def main():
    progress = ProgressLine(sys.stderr, sys.stderr.isatty(), time.monotonic)
    for line in sys.stdin:
        progress.take(line.rstrip("\n"))
    progress.close()


if __name__ == "__main__":
    main()
