"""Runs `launch`: shows its output, and passes interrupts on."""

import collections
import os
import re
import signal
import subprocess
import sys
import threading

from muster.errors import MusterError
from muster.notebook import NotebookOutput, is_notebook

_KEPT_LINE_COUNT = 50
_EXEC_WITH_PARENT = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                 "exec_with_parent.py")


def _with_parent(command):
    """Returns a command that runs `command`, and ends it in an orderly way if Python dies."""
    if not sys.executable:
        return command  # Python is part of another program.
    return [sys.executable, "-I", "-S", _EXEC_WITH_PARENT, str(os.getpid()), *command]


def _writes_to_terminal():
    """True if sys.stdout is file descriptor 1, and that is a terminal."""
    try:
        return sys.stdout.fileno() == 1 and os.isatty(1)
    except (AttributeError, OSError, ValueError):
        return False  # Notebooks replace sys.stdout.


def _environment():
    """Returns the environment of the cluster, which finds packages of this Python by it."""
    environment = dict(os.environ)
    if sys.prefix != sys.base_prefix:
        environment.setdefault("VIRTUAL_ENV", sys.prefix)
    return environment


def _start(command, silent, outlives_python):
    """Starts a process. Returns it, its pipe, and the stream that shows the pipe, or None.

    The process is in a separate process group: Ctrl-C on the terminal reaches only this
    process, which then ends the cluster in an orderly way. Runs no handler of
    os.register_at_fork(): libraries with threads, such as JAX, warn of forks.
    """
    draws_bar = not silent and _writes_to_terminal()
    sys.stdout.flush()
    process = subprocess.Popen(
        command if outlives_python else _with_parent(command), stdin=subprocess.DEVNULL,
        stdout=None if draws_bar else subprocess.PIPE,
        stderr=subprocess.PIPE if draws_bar else subprocess.STDOUT, start_new_session=True,
        env=_environment())
    if draws_bar:
        return process, process.stderr, sys.stderr
    return process, process.stdout, None if silent else _shown_stream()


def _shown_stream():
    if not is_notebook():
        return sys.stdout
    import IPython.display

    return NotebookOutput(IPython.display, sys.stdout)


def _show(pipe, shown, kept):
    for line in pipe:
        text = line.decode("utf-8", "replace")
        kept.append(text.rstrip("\n"))
        if shown is not None:
            shown.write(text)
            shown.flush()


def _last_error(log_path):
    """Returns the last error in a task's log, which may have several lines, or None."""
    try:
        with open(log_path, encoding="utf-8", errors="replace") as file:
            lines = file.read().splitlines()
    except OSError:
        return None
    for index in range(len(lines) - 1, -1, -1):
        match = re.match(r"(?:coordinator|worker|ps): (.*)", lines[index])
        if match:
            return "\n".join([match.group(1)] + lines[index + 1:])
    return None


def failure_message(log_dir, lines):
    """Returns why a run failed: the error of the task that `launch` names.

    Args:
      log_dir: of the run; need not exist.
      lines: the last lines that `launch` wrote.
    """
    for line in reversed(lines):
        verdict = re.search(r"launch\s*\| the job has failed: (.*)", line)
        if verdict:
            task = re.match(r"[a-z]+(?: \d+)?", verdict.group(1)).group()
            name = "chief" if task == "chief" else task.replace(" ", "-")
            error = _last_error(os.path.join(log_dir, name + ".log"))
            return f"{task}: {error}" if error else verdict.group(1)
        usage = re.match(r"launch: (.*)", line)
        if usage:
            return usage.group(1)
    # Tasks on other machines have their logs in the output.
    for pattern in ("(?:coordinator|worker|ps): ", "(?:srun|slurmstepd): "):
        for line in reversed(lines):
            if re.match(pattern, line):
                return line
    return lines[-1] if lines else "launch ended with an error"


class _Interrupts:
    """Passes SIGINT on to a process instead of raising KeyboardInterrupt.

    Does so in the main thread only, because Python handles signals in no other.

    Attributes:
      are_raised: True to raise KeyboardInterrupt as well, while code of the user runs.
    """

    def __init__(self):
        self.happened = False
        self.are_raised = False
        self._process = None
        self._former = None

    def __enter__(self):
        is_ignored = signal.getsignal(signal.SIGINT) is signal.SIG_IGN
        if threading.current_thread() is threading.main_thread() and not is_ignored:
            self._former = signal.signal(signal.SIGINT, self._on_signal)
        return self

    def __exit__(self, *_):
        if self._former is not None:
            signal.signal(signal.SIGINT, self._former)

    def pass_on_to(self, process):
        self._process = process
        if self.happened:
            process.send_signal(signal.SIGINT)

    def _on_signal(self, *_):
        self.happened = True
        if self._process is not None:
            self._process.send_signal(signal.SIGINT)
        if self.are_raised:
            raise KeyboardInterrupt


def _feed(feed, process, interrupts):
    """Calls feed() in this thread, on which the program's iterators may depend.

    If feed() fails, terminates the process and returns the error.
    """
    try:
        interrupts.are_raised = True
        try:
            if interrupts.happened:
                raise KeyboardInterrupt
            feed(lambda: process.poll() is None)
        finally:
            interrupts.are_raised = False
    except BaseException as error:
        if not interrupts.happened:
            process.terminate()
        return error
    return None


def run_launch(command, run_dir, silent=False, feed=None, outlives_python=False):
    """Runs `command` until it ends, and shows its output.

    Args:
      outlives_python: True if the command is not to be terminated when Python ends.
      feed: called while the command runs, with a function that returns True if the
        command is still running.

    Raises:
      KeyboardInterrupt: SIGINT was received and passed on, and the command has ended.
      MusterError: the command failed; has the message of the task that failed.
      any: raised by feed(); the command has ended.
    """
    kept = collections.deque(maxlen=_KEPT_LINE_COUNT)
    failure = None
    with _Interrupts() as interrupts:
        process, pipe, shown = _start(command, silent, outlives_python)
        try:
            interrupts.pass_on_to(process)
            if feed is None:
                _show(pipe, shown, kept)
            else:
                show = threading.Thread(target=_show, args=(pipe, shown, kept), daemon=True)
                show.start()
                failure = _feed(feed, process, interrupts)
                show.join()
            process.wait()
        finally:
            # The command still runs if, for example, its output could not be shown.
            if process.poll() is None:
                process.terminate()
                process.wait()
            pipe.close()
    if interrupts.happened:
        raise KeyboardInterrupt
    if failure is not None:
        raise failure
    if process.returncode != 0:
        log_dir = os.path.join(run_dir, "logs")
        raise MusterError(failure_message(log_dir, kept), process.returncode,
                          log_dir if os.path.isdir(log_dir) else None)
