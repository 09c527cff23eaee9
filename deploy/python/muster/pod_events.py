"""Passes events of callbacks from a pod to this machine, and answers back (docs/formats.md).

The pod of the chief runs `musterctl exchange`. Both ends have a folder with the same files.
"""

import glob
import json
import os
import re
import subprocess
import tarfile
import threading
import time

_MUSTERCTL = "/usr/bin/musterctl"
_POLL_SECONDS = 0.005
_EVENT, _ANSWER, _MODEL = "event.json", "answer.json", "weights.keras"
_RECEIVED = re.compile(r"callbacks_\d+/(event\.json|weights\.keras)")
_WEIGHTS = "weights"  # The field of an event or of an answer that names a file.


def _version(path):
    """Returns what changes when a file is replaced, or None if there is no file."""
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return None
    return status.st_ino, status.st_mtime_ns


def with_moved_weights(content, source, target):
    """Returns an event or an answer whose file is below another folder."""
    fields = json.loads(content)
    path = fields.get(_WEIGHTS, "")
    if path.startswith(source + "/"):
        fields[_WEIGHTS] = target + path[len(source):]
    return json.dumps(fields).encode()


class PodEvents:
    """Exchanges files with a pod until its end, or until the connection is lost.

    Args:
      kubectl: Kubectl.
      pod: its name. It must run.
      pod_folder: where the tasks have the folders callbacks_0, callbacks_1, ...
      folder: where this machine has them.
    """

    def __init__(self, kubectl, pod, pod_folder, folder):
        self._pod_folder, self._folder = pod_folder, folder
        command = [_MUSTERCTL, "exchange", pod_folder, _EVENT, _MODEL]
        self._process = subprocess.Popen(  # pylint: disable=consider-using-with
            kubectl.command("exec", "--stdin", pod, "--", *command),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0,
            start_new_session=True)
        for run in (self._receive, self._send):
            threading.Thread(target=run, daemon=True).start()

    @property
    def is_connected(self):
        """False once the connection was lost, or the pod has ended."""
        return self._process.poll() is None

    def close(self):
        """Ends the exchange."""
        self._process.kill()
        self._process.wait()

    def _receive(self):
        try:
            with tarfile.open(fileobj=self._process.stdout, mode="r|", bufsize=512) as tar:
                for member in tar:
                    if member.isfile() and _RECEIVED.fullmatch(member.name):
                        self._replace(member.name, tar.extractfile(member).read())
        except (OSError, tarfile.TarError, ValueError):
            self._process.kill()  # Another connection sends the files again.

    def _replace(self, name, content):
        path = os.path.join(self._folder, name)
        if os.path.basename(name) == _EVENT:
            content = with_moved_weights(content, self._pod_folder, self._folder)
            if self._has(path, content):  # It would be served again.
                return
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path + ".tmp", "wb") as file:
            file.write(content)
        os.replace(path + ".tmp", path)

    @staticmethod
    def _has(path, content):
        try:
            with open(path, "rb") as file:
                return file.read() == content
        except FileNotFoundError:
            return False

    def _send(self):
        sent = {}
        try:
            while self.is_connected:
                for path in glob.glob(os.path.join(glob.escape(self._folder), "callbacks_*",
                                                   _ANSWER)):
                    version = _version(path)
                    if version is not None and sent.get(path) != version:
                        sent[path] = version
                        self._send_answer(path)
                time.sleep(_POLL_SECONDS)
        except (OSError, ValueError):
            self._process.kill()

    def _send_answer(self, path):
        """Sends an answer, after the file that it names."""
        with open(path, "rb") as file:
            content = file.read()
        weights = json.loads(content).get(_WEIGHTS, "")
        if weights.startswith(self._folder + "/"):
            with open(weights, "rb") as file:
                self._send_file(weights, file.read())
        self._send_file(path, with_moved_weights(content, self._folder, self._pod_folder))

    def _send_file(self, path, content):
        info = tarfile.TarInfo(os.path.relpath(path, self._folder))
        info.size = len(content)
        padding = -len(content) % tarfile.BLOCKSIZE
        data = memoryview(info.tobuf(tarfile.GNU_FORMAT) + content + bytes(padding))
        while data:
            data = data[self._process.stdin.write(data):]
