"""Submits a job to Kubernetes, shows its output until it ends, and brings its files back.

    python3 -S follow_kubernetes.py FOLDER

FOLDER is that of a run, which muster.Kubernetes has prepared. Ends with the exit status of the
job, after it has deleted what it made. SIGINT and SIGTERM have the tasks save and end, and a
second one ends them at once. Ends without touching the job when the process that started this
one has ended: the same command then goes on where this one was, whatever that was.
"""

import fcntl
import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import time

import kubernetes_objects
import output_files
import pod_states
from kubectl import Kubectl, KubectlError, parse_objects
from pod_events import PodEvents
from pod_files import PodFiles
from pod_logs import PodLogs

_POLL_SECONDS = 1.0
_EVENT_SECONDS = 10.0  # Between two questions for events.
# How long a cluster that answered before may give no answer.
_SILENCE_SECONDS_MAX = 300
_FIRST_SILENCE_SECONDS_MAX = 30
# How long a pod may have a reason not to start that needs help, in case it goes away.
_BLOCKED_SECONDS_MAX = 20
# How long other tasks may take to end after those that lead the job.
_END_SECONDS_MAX = 60
_DELETION_SECONDS = 20  # What Kubernetes may need to end a pod, beside its grace period.
_LOG_SECONDS_MAX = 10
_LOCK_SECONDS_MAX = 60
_DELETE_SECONDS_MAX = 90
_INTERRUPTED = 130  # docs/clusters.md
# Names in the folder of the run that the tasks do not need, and those that they may not replace.
_OWN = ("kubernetes", "cluster.json", "positions.json", "model.job", "logs")
_KEPT = ("kubernetes", "cluster.json", "positions.json", "model.job", "model.keras", "data",
         "events")


class _Failure(Exception):
    """The job cannot run, or has failed."""

    def __init__(self, message, status=1):
        super().__init__(message)
        self.status = status


class _Interrupted(Exception):
    """SIGINT or SIGTERM was received."""


class _State:
    """What is known of the job, in a file.

    Attributes:
      values: "kinds" when objects may exist, "submitted" when tasks may run, "status" when the
        result is in the folder.
    """

    def __init__(self, path):
        self._path = path
        self.values = {}
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                self.values = json.load(file)

    def set(self, **values):
        self.values.update(values)
        with open(self._path + ".new", "w", encoding="utf-8") as file:
            json.dump(self.values, file)
        os.replace(self._path + ".new", self._path)


def _say(text):
    """Shows a line, unless the process that reads it has ended."""
    try:
        print(text, flush=True)
    except OSError:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # pylint: disable=consider-using-with


class _Run:
    """The job of a run.

    Args:
      folder: of the run.
    """

    def __init__(self, folder):
        with open(os.path.join(folder, "cluster.json"), encoding="utf-8") as file:
            self._fields = json.load(file)["kubernetes"]
        self._folder = folder
        self._own = os.path.join(folder, "kubernetes")
        self._name = self._fields["name"]
        self._label = f"--selector=muster/job={self._name}"
        self._state = _State(os.path.join(self._own, "state.json"))
        self._signal_count = 0  # Of all signals, and of those that were acted upon.
        self._handled_signal_count = 0
        self._parent = os.getppid()
        self._kubectl = self._new_kubectl(_FIRST_SILENCE_SECONDS_MAX)
        self._logs = None
        self._exchange = None  # (name of a pod, its PodEvents) while callbacks are served.
        self._shown_state = ""
        self._events = ("", -_EVENT_SECONDS)  # Of Jobs without pods, and when they were asked for.
        lock = os.path.join(self._own, "lock")
        self._lock = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def _new_kubectl(self, silence_seconds_max):
        return Kubectl(self._fields["context"], self._fields["namespace"], silence_seconds_max,
                       lambda: self._signal_count > 1)

    def request_end(self, *_):
        """The handler of SIGINT and SIGTERM."""
        self._signal_count += 1

    def run(self):
        """Returns the exit status of the job, or 0 if the parent process has ended.

        Raises:
          _Failure: the job has failed.
          KubectlError: kubectl has failed. Unless it has no answer, the objects are deleted.
        """
        self._await_lock()
        values = self._state.values
        if "status" in values:  # Another process ended after it had received the result.
            self._delete()
            if values["status"] == 0:
                return 0
            raise _Failure(values["message"], values["status"])
        try:
            if "submitted" not in values:
                self._submit()
            self._kubectl = self._new_kubectl(_SILENCE_SECONDS_MAX)
            if not self._follow():
                return 0
        except _Interrupted:
            self._handled_signal_count = self._signal_count
            self._end_tasks()
            self._fail(_INTERRUPTED, "the run was interrupted")
            return _INTERRUPTED
        except (_Failure, KubectlError) as error:
            if not getattr(error, "has_answer", True):
                raise
            self._fail(getattr(error, "status", 1), str(error))
            raise
        self._succeed()
        return 0

    def _await_lock(self):
        end = time.monotonic() + _LOCK_SECONDS_MAX
        while True:
            try:
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                if time.monotonic() > end:
                    raise _Failure(f"another process follows the run in {self._folder}, and has "
                                   f"not ended within {_LOCK_SECONDS_MAX} s") from None
            time.sleep(_POLL_SECONDS / 5)

    # Submission.

    def _submit(self):
        with open(os.path.join(self._own, "manifests.yaml"), encoding="utf-8") as file:
            # The client converts YAML to JSON. The server checks the objects below.
            text = self._kubectl("create", "--dry-run=client", "--validate=false",
                                 "--filename=-", "--output=json", text=file.read())
        objects = kubernetes_objects.adapted(parse_objects(text), self._fields)
        if "kinds" not in self._state.values:
            self._check_is_new()
        self._state.set(kinds=kubernetes_objects.kinds(objects))
        first, starting = kubernetes_objects.parts(objects)
        _say(f"Kubernetes job {self._name}: copying files")
        self._create(first + self._secrets())
        if self._fields["is_in_object_store"]:
            self._copy(self._folder_to_send(), self._fields["input"])
        else:
            files = self._files(objects)
            files.send(self._folder, self._names_to_send(), self._fields["input"])
            if self._fields["has_own_callbacks"]:
                events = os.path.join(self._own, "events")
                files.send(events, sorted(os.listdir(events)), self._fields["events"])
        self._raise_if_interrupted()
        self._create(starting)
        self._state.set(submitted=True, objects=objects)

    def _check_is_new(self):
        if self._kubectl.objects("get", "jobs,pods,persistentvolumeclaims", self._label):
            raise _Failure(f"there is a job {self._name} in this namespace already; expected a new "
                           "name")

    def _create(self, objects):
        """Creates the objects that do not exist. Those that exist are of the same job."""
        # `kubectl apply` would keep a copy of each object in an annotation, which is too small for
        # the Secret of many certificates.
        try:
            self._kubectl("create", "--filename=-", text=json.dumps(
                {"apiVersion": "v1", "kind": "List", "items": objects}))
        except KubectlError as error:
            if not all("(AlreadyExists)" in line for line in str(error).split("; ")):
                raise

    def _secrets(self):
        """Returns the Secrets that the manifests refer to."""
        secret = kubernetes_objects.secret
        made = [secret(f"{self._name}-status", self._name,
                       {"token": secrets.token_hex(32).encode()})]
        certificates = os.path.join(self._own, "tls")
        if os.path.isdir(certificates):
            data = {}
            for name in sorted(os.listdir(certificates)):
                if name != "ca.key":  # It could make certificates for others.
                    with open(os.path.join(certificates, name), "rb") as file:
                        data[name] = file.read()
            made.append(secret(f"{self._name}-tls", self._name, data))
        if self._fields["is_in_object_store"]:
            made.append(secret(f"{self._name}-storage", self._name, {
                name: os.environ[name].encode() for name in kubernetes_objects.STORAGE_VARIABLES
                if name in os.environ}))
        return made

    def _names_to_send(self):
        return [name for name in sorted(os.listdir(self._folder))
                if name not in _OWN and not name.startswith("callbacks_")]

    def _folder_to_send(self):
        """Returns a folder with links to the files that the tasks need."""
        folder = os.path.join(self._own, "input")
        os.makedirs(folder, exist_ok=True)
        for name in self._names_to_send():
            if not os.path.lexists(os.path.join(folder, name)):
                os.symlink(os.path.join(self._folder, name), os.path.join(folder, name))
        return folder

    def _copy(self, source, target):
        done = subprocess.run([self._fields["musterctl"], "copy", source, target], check=False,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if done.returncode != 0:
            raise _Failure(f"copying {source} to {target}: {done.stderr.strip()}")

    def _files(self, objects):
        """Returns the files of the volume, once a pod that has the volume runs."""
        pod = kubernetes_objects.files_pod(objects, self._name)
        name = pod["metadata"]["name"]
        self._create([pod])
        watch = _PodWatch(self._fields["timeout_seconds"])
        while True:
            self._raise_if_interrupted()
            found = self._kubectl.objects("get", f"pod/{name}")[0]
            if pod_states.is_running(found):
                return PodFiles(self._kubectl, name)
            self._show_state(f"{name} waits", pod_states.waiting_reason(found))
            watch.check(found, name)
            time.sleep(_POLL_SECONDS)

    # While the tasks run.

    def _raise_if_interrupted(self):
        if self._signal_count > self._handled_signal_count:
            raise _Interrupted

    def _objects(self):
        """Returns (pods of tasks, Jobs)."""
        found = self._kubectl.objects("get", "pods,jobs", self._label)
        return ([one for one in found if one["kind"] == "Pod"
                 and pod_states.task_of(one, self._name)],
                [one for one in found if one["kind"] == "Job"])

    def _show_state(self, text, reason):
        line = f"Kubernetes job {self._name}: {text}" + (f" ({reason})" if reason else "")
        if line != self._shown_state:
            self._shown_state = line
            _say(line)

    def _follow(self):
        """Shows the output of the tasks until the job has succeeded.

        Returns False if the parent process has ended before that.

        Raises:
          _Failure, _Interrupted, KubectlError
        """
        self._logs = PodLogs(self._kubectl, os.path.join(self._folder, "logs"), _say)
        watch = _PodWatch(self._fields["timeout_seconds"])
        started, led = set(), None
        while True:
            if os.getppid() != self._parent:
                return False
            self._raise_if_interrupted()
            pods, jobs = self._objects()
            for pod in pods:
                if pod_states.has_started(pod):
                    task = pod_states.task_of(pod, self._name)
                    started.add(task)
                    self._logs.follow(pod, task)
            self._exchange_events(pods)
            if self._has_succeeded(jobs):
                led = led or time.monotonic()
                is_last = all(pod_states.condition(job, "Complete") for job in jobs)
                if is_last or time.monotonic() - led > _END_SECONDS_MAX:
                    self._logs.end(_LOG_SECONDS_MAX)
                    return True
            else:
                self._check(pods, jobs, started, watch)
            time.sleep(_POLL_SECONDS)

    def _exchange_events(self, pods):
        """Passes events of callbacks from the pod that leads the job, as long as it runs."""
        if not self._fields["has_own_callbacks"]:
            return
        lead = "chief-0" if self._fields["ps"] else "worker-0"
        pod = next((pod["metadata"]["name"] for pod in pods if pod_states.is_running(pod)
                    and pod_states.task_of(pod, self._name) == lead), None)
        if self._exchange is not None:
            name, events = self._exchange
            if name == pod and events.is_connected:
                return
            events.close()
            self._exchange = None
        if pod is not None:
            self._exchange = pod, PodEvents(self._kubectl, pod, self._fields["events"],
                                            self._folder)

    def _has_succeeded(self, jobs):
        lead = "chief" if self._fields["ps"] else "worker"
        leading = [job for job in jobs if job["metadata"]["labels"].get("muster/role") == lead]
        return bool(leading) and all(pod_states.condition(job, "Complete") for job in leading)

    def _check(self, pods, jobs, started, watch):
        """Shows which pods wait. Raises _Failure if the job cannot go on."""
        if not jobs:
            raise _Failure(f"the job {self._name} was deleted by someone else, or has ended long "
                           "ago")
        for job in jobs:
            failed = pod_states.condition(job, "Failed")
            if failed:
                self._logs.end(_LOG_SECONDS_MAX)
                raise self._failure(pods, failed)
        count = sum(job["spec"].get("completions", 1) for job in jobs)
        waiting = [pod for pod in pods if not pod_states.has_started(pod)]
        running = [pod for pod in pods if pod_states.is_running(pod)]
        reason = ""
        if waiting:
            task = pod_states.shown(pod_states.task_of(waiting[0], self._name))
            why = pod_states.waiting_reason(waiting[0])
            reason = f"{task} waits{': ' if why else ''}{why}"
        elif len(pods) < count:
            reason = self._creation_problem()
        self._show_state(f"{len(running)} of {count} pods run", reason)
        for pod in waiting:
            watch.check(pod, pod_states.shown(pod_states.task_of(pod, self._name)))
        if len(started) < count:
            watch.check_time(f"{len(started)} of {count} pods have started", reason)

    def _creation_problem(self):
        """Returns why Kubernetes creates no pods for a Job, such as a quota, or ""."""
        text, asked = self._events
        if time.monotonic() - asked >= _EVENT_SECONDS:
            events = self._kubectl.objects(
                "get", "events", "--field-selector=type=Warning,involvedObject.kind=Job")
            text = next((" ".join(event["message"].split()) for event in reversed(events)
                         if event["involvedObject"]["name"].startswith(f"{self._name}-")), "")
            self._events = text, time.monotonic()
        return text

    def _failure(self, pods, condition):
        """Returns the _Failure of a job of which a Job has failed."""
        pod = pod_states.cause(pods)
        if pod is None:
            return _Failure(f"{condition.get('reason', '')}: {condition.get('message', '')}")
        task = pod_states.shown(pod_states.task_of(pod, self._name))
        status, reason = pod_states.exit_of(pod)
        if reason == "OOMKilled":
            return _Failure(f"{task} was killed because it used more memory than its limit: "
                            "give it more with worker_resources or server_resources", status)
        return _TaskFailure(f"the job has failed: {task} exited with status {status}", status)

    def _end_tasks(self):
        """Has the tasks save and end, and waits for that. A second signal ends them at once."""
        if "submitted" not in self._state.values:
            return
        self._show_state("the tasks save and end", "")
        self._kubectl("delete", "jobs", self._label, "--cascade=background", "--wait=false",
                      "--ignore-not-found")
        end = time.monotonic() + _DELETION_SECONDS + kubernetes_objects.grace_seconds(
            self._state.values["objects"])
        while time.monotonic() < end and self._signal_count == self._handled_signal_count:
            if all(pod_states.has_ended(pod) for pod in self._objects()[0]):
                break
            time.sleep(_POLL_SECONDS / 2)
        else:
            tasks = f"{self._label},muster/role!={kubernetes_objects.FILES}"
            self._kubectl("delete", "pods", tasks, "--grace-period=0", "--force", "--wait=false",
                          "--ignore-not-found")
        if self._logs is not None:
            self._logs.end(_LOG_SECONDS_MAX)

    # The end.

    def _succeed(self):
        """Receives the files of the run, and deletes the objects.

        Raises:
          _Failure: the files cannot be received. The objects stay.
        """
        try:
            self._receive()
        except (_Failure, _Interrupted, KubectlError, OSError) as error:
            raise _Failure(
                "the job has succeeded, but its result was not received: "
                f"{str(error) or 'interrupted'}. The cluster keeps it: "
                f"muster.attach(model, {self._folder!r}) tries again") from None
        self._state.set(status=0, message="")
        self._delete()

    def _fail(self, status, message):
        """Receives what there is of the run, and deletes the objects."""
        if "submitted" in self._state.values:
            try:
                self._receive()
            except (_Failure, _Interrupted, KubectlError, OSError) as error:
                _say(f"Kubernetes job {self._name}: there are no results: {error}")
        if "kinds" in self._state.values:
            self._state.set(status=status, message=message)
            self._delete()

    def _receive(self):
        _say(f"Kubernetes job {self._name}: receiving files")
        run = os.path.join(self._own, "run")
        shutil.rmtree(run, ignore_errors=True)
        os.makedirs(run)
        if self._fields["is_in_object_store"]:
            self._copy(self._fields["run"], run)
        else:
            self._files(self._state.values["objects"]).receive(self._fields["run"], run)
        output_files.fetch(run, self._own)
        for name in sorted(os.listdir(run)):
            if name not in _KEPT:
                _move(os.path.join(run, name), os.path.join(self._folder, name))
        shutil.rmtree(run)

    def _delete(self):
        """Deletes all objects of the job. A failure leaves them, with a note."""
        kinds = ",".join(self._state.values["kinds"])
        try:
            self._kubectl("delete", kinds, self._label, "--ignore-not-found",
                          f"--timeout={_DELETE_SECONDS_MAX}s",
                          timeout_seconds=_DELETE_SECONDS_MAX + 10)
        except KubectlError as error:
            _say(f"Kubernetes job {self._name}: not everything was deleted: {error}. "
                 f"{' '.join(self._kubectl.command('delete', kinds, self._label))} repeats this")


class _TaskFailure(_Failure):
    """A task has failed. Its log has the cause."""


class _PodWatch:
    """Limits how long pods may take to start.

    Args:
      timeout_seconds: for all pods together.
    """

    def __init__(self, timeout_seconds):
        self._timeout_seconds = timeout_seconds
        self._begin = time.monotonic()
        # Since when pods cannot start without help, and the longest reason, by name: Kubernetes
        # alternates between the reason and that it waits.
        self._blocked = {}

    def check(self, pod, shown):
        """Raises _Failure if a pod that has not started is too late, or cannot start."""
        name = pod["metadata"]["name"]
        blocking = pod_states.blocking_reason(pod)
        if not blocking:
            self._blocked.pop(name, None)
        else:
            since, reason = self._blocked.get(name, (time.monotonic(), ""))
            reason = max(reason, blocking, key=len)
            self._blocked[name] = since, reason
            if time.monotonic() - since > _BLOCKED_SECONDS_MAX:
                raise _Failure(f"{shown} cannot start: {reason}")
        self.check_time(f"{shown} has not started", pod_states.waiting_reason(pod))

    def check_time(self, what, reason):
        """Raises _Failure if the time is over."""
        if time.monotonic() - self._begin <= self._timeout_seconds:
            return
        why = reason.rstrip(".") or "Kubernetes gives no reason"
        advice = pod_states.pending_advice(reason)
        raise _Failure(f"{what} within {self._timeout_seconds} s: {why}"
                       + (f". {advice}" if advice else ""))


def _move(source, target):
    """Moves a file, or all files below a folder."""
    if not os.path.isdir(source):
        os.replace(source, target)
        return
    os.makedirs(target, exist_ok=True)
    for name in os.listdir(source):
        _move(os.path.join(source, name), os.path.join(target, name))


def main(folder):
    run = _Run(folder)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, run.request_end)
    try:
        return run.run()
    except _TaskFailure as error:
        print(f"launch | {error}", file=sys.stderr, flush=True)
        return error.status
    except _Failure as error:
        print(f"launch: {error}", file=sys.stderr, flush=True)
        return error.status
    except KubectlError as error:
        hint = "" if error.has_answer else \
            f". The job may go on: muster.attach(model, {folder!r}) waits for it again"
        print(f"launch: {error}{hint}", file=sys.stderr, flush=True)
        return 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
