"""Tests how show_progress.py shows Bazel's lines."""

import io
import unittest

import show_progress

LINES = [
    "Starting local Bazel server and connecting to it...",
    "Loading: 0 packages loaded",
    "INFO: Analyzed 4 targets (210 packages loaded).",
    "[1 / 40] [Prepa] BazelWorkspaceStatusAction stable-status.txt",
    "[1,230 / 2,460] Compiling common/core/system/clock.cc; 2s linux-sandbox ... (2 actions)",
    "ERROR: a.cc:3: expected ';'",
    "[2,460 / 2,460] checking cached actions",
    "INFO: Build completed successfully, 2,460 total actions",
]


class ShowProgressTest(unittest.TestCase):

    def shown(self, is_terminal, seconds_per_line):
        now = [0]
        output = io.StringIO()
        progress = show_progress.ProgressLine(output, is_terminal, lambda: now[0])
        for line in LINES:
            progress.take(line)
            now[0] += seconds_per_line
        progress.close()
        return output.getvalue()

    def test_a_terminal_has_one_line_and_errors(self):
        self.assertEqual(
            self.shown(is_terminal=True, seconds_per_line=10),
            "\r\033[Kbuilt 1 of 40 parts, 2%, after 0:30 min"
            "\r\033[Kbuilt 1,230 of 2,460 parts, 50%, after 0:40 min\n"
            "ERROR: a.cc:3: expected ';'\n"
            "\r\033[Kbuilt 2,460 of 2,460 parts, 100%, after 1:00 min\n")

    def test_a_log_has_a_line_each_minute(self):
        self.assertEqual(
            self.shown(is_terminal=False, seconds_per_line=16),
            "built 1,230 of 2,460 parts, 50%, after 1:04 min\n"
            "ERROR: a.cc:3: expected ';'\n")


if __name__ == "__main__":
    unittest.main()
