"""The output of tasks in pods, while it is written."""

import os
import subprocess
import threading
import time

from pod_states import has_ended, shown

_RETRY_SECONDS = 1


class _PodLog:
    """Shows the output of one pod until it ends. Reconnects when the connection is lost.

    Attributes:
      has_ended: set when the pod has ended. kubectl does not tell the end of the output from some
        ends of a connection, so the output is read once more after that.
      is_needed: False to show nothing more.
    """

    def __init__(self, kubectl, pod, show):
        self._kubectl, self._pod, self._show = kubectl, pod, show
        self._line_count = 0
        self._process = None
        self.has_ended = False
        self.is_needed = True
        self.thread = threading.Thread(target=self._follow, daemon=True)
        self.thread.start()

    def _follow(self):
        while self.is_needed:
            had_ended = self.has_ended
            status, error = self._follow_once()
            is_deleted = b"NotFound" in error
            if is_deleted or (status == 0 and had_ended):
                return
            time.sleep(_RETRY_SECONDS)

    def _follow_once(self):
        """Shows the lines that were not shown before.

        Returns:
          (exit status of kubectl, what it printed on standard error).
        """
        with subprocess.Popen(
                self._kubectl.command("logs", "--follow", self._pod), stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True) as logs:
            self._process = logs
            for index, line in enumerate(logs.stdout):
                if index >= self._line_count and line.endswith(b"\n"):
                    self._line_count += 1
                    self._show(line.decode("utf-8", "replace").rstrip("\n"))
            error = logs.stderr.read()
            return logs.wait(), error

    def stop(self):
        """Ends the thread, even if the cluster does not answer."""
        self.is_needed = False
        if self._process is not None:
            self._process.kill()


class PodLogs:
    """Shows the output of all pods of a job, and writes it into a file for each task.

    Args:
      kubectl: Kubectl.
      folder: for the files.
      say: a function that shows a line.
    """

    def __init__(self, kubectl, folder, say):
        self._kubectl, self._folder, self._say = kubectl, folder, say
        self._logs = {}
        self._tasks = set()
        os.makedirs(folder, exist_ok=True)

    def follow(self, pod, task):
        """Follows the output of a pod that has started."""
        name = pod["metadata"]["name"]
        if name in self._logs:
            self._logs[name].has_ended = has_ended(pod)
            return
        path = os.path.join(self._folder, f"{task}.log")
        if task not in self._tasks:  # What another process has written comes again.
            self._tasks.add(task)
            with open(path, "w", encoding="utf-8"):
                pass

        def show(line):
            with open(path, "a", encoding="utf-8") as file:
                file.write(line + "\n")
            self._say(f"{shown(task)} | {line}")

        self._logs[name] = _PodLog(self._kubectl, name, show)

    def end(self, timeout_seconds):
        """Waits until all output of pods that have ended is shown, or the time is over."""
        end = time.monotonic() + timeout_seconds
        for log in self._logs.values():
            log.has_ended = True
        for log in self._logs.values():
            log.thread.join(max(0, end - time.monotonic()))
        for log in self._logs.values():
            log.stop()
