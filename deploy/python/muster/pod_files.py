"""Copies files into and out of a pod, which runs `musterctl copy`."""

import os
import subprocess
import tarfile
import tempfile
import threading
import time

from kubectl import KubectlError, error_of

_MUSTERCTL = "/usr/bin/musterctl"
_SILENCE_SECONDS_MAX = 120
_POLL_SECONDS = 1
_ATTEMPT_COUNT_MAX = 3


class _Watched:
    """A pipe of a process, which is killed when no bytes pass for a long time."""

    def __init__(self, pipe, process):
        self._pipe, self._process = pipe, process
        self._passed = time.monotonic()
        self.is_stuck = False
        threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self):
        while self._process.poll() is None:
            if time.monotonic() - self._passed > _SILENCE_SECONDS_MAX:
                self.is_stuck = True
                self._process.kill()
            time.sleep(_POLL_SECONDS)

    def write(self, data):
        self._pipe.write(data)
        self._passed = time.monotonic()
        return len(data)

    def read(self, size):
        data = self._pipe.read(size)
        self._passed = time.monotonic()
        return data


def _extract(tar, folder):
    # Old versions of Python have no filters. Archives of musterctl have regular files only.
    tar.extractall(folder, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))


class PodFiles:
    """The files in a pod that has /usr/bin/musterctl.

    Args:
      kubectl: Kubectl.
      pod: its name. It must run.
    """

    def __init__(self, kubectl, pod):
        self._kubectl, self._pod = kubectl, pod

    def _run(self, arguments, pass_data, **pipes):
        """Runs musterctl in the pod.

        Args:
          pass_data: a function of the process and its pipe.

        Raises:
          KubectlError: it has failed.
        """
        with tempfile.TemporaryFile() as errors:
            command = self._kubectl.command(
                "exec", *(["--stdin"] if "stdin" in pipes else []), self._pod, "--", _MUSTERCTL,
                *arguments)
            with subprocess.Popen(command, stderr=errors, start_new_session=True,
                                  **{"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL,
                                     **pipes}) as process:
                pipe = _Watched(process.stdin or process.stdout, process)
                failure = None
                try:
                    pass_data(pipe)
                    if process.stdin:
                        process.stdin.close()
                except (OSError, tarfile.TarError) as error:
                    failure = error
                    process.kill()
                try:
                    status = process.wait(_SILENCE_SECONDS_MAX)
                except subprocess.TimeoutExpired:
                    process.kill()
                    status, pipe.is_stuck = process.wait(), True
                if pipe.is_stuck:
                    raise KubectlError(f"no bytes have passed for {_SILENCE_SECONDS_MAX} s", False)
                errors.seek(0)
                text = errors.read().decode("utf-8", "replace")
                if status != 0 and (failure is None or text.strip()):
                    raise error_of(text)
                if failure is not None:
                    raise KubectlError(f"the connection was lost: {failure}", False)

    def _repeat(self, action):
        for attempt in range(_ATTEMPT_COUNT_MAX):
            try:
                return action()
            except KubectlError as error:
                if error.has_answer or attempt == _ATTEMPT_COUNT_MAX - 1:
                    raise
                time.sleep(_POLL_SECONDS)

    def send(self, folder, names, target):
        """Copies files and folders with these names in `folder` into a folder of the pod."""

        def write(pipe):
            with tarfile.open(fileobj=pipe, mode="w|", format=tarfile.GNU_FORMAT) as tar:
                for name in names:
                    tar.add(os.path.join(folder, name), name)

        self._repeat(lambda: self._run(["copy", "-", target], write, stdin=subprocess.PIPE))

    def receive(self, source, folder):
        """Copies a folder of the pod, with all files in it."""

        def read(pipe):
            with tarfile.open(fileobj=pipe, mode="r|") as tar:
                _extract(tar, folder)

        self._repeat(lambda: self._run(["copy", source, "-"], read, stdout=subprocess.PIPE))
