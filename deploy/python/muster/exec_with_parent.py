"""Executes a command that gets SIGTERM when the process that started it ends.

    python3 -I -S exec_with_parent.py PID COMMAND [ARGUMENT ...]

PID is the parent process. The new process sets the signal itself, so that the parent
runs no Python code between fork and exec.
"""

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def main(parent, command):
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # Replaces Python's handler.
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:
        sys.exit(128 + signal.SIGTERM)  # The parent has ended before prctl().
    try:
        os.execv(command[0], command)
    except OSError as error:
        sys.exit(f"launch: cannot run {command[0]}: {error}")


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
