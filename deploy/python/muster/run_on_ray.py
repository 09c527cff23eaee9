"""Runs a job on a cluster of Ray: the scheduler of Ray places the tasks.

    python3 run_on_ray.py SPECIFICATION

SPECIFICATION is a JSON object with the arguments of muster.Ray, and with `launch`, `job` and
`folder`. Each task is an actor that runs an executable of Muster. Prints what the tasks print, and
ends with the exit status of the job. SIGINT and SIGTERM have the tasks save and end, and a second
one kills them.
"""

import io
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
import uuid

import ray

_POLL_SECONDS = 0.2
# How long tasks may take to end after the one that leads the job.
_END_SECONDS_MAX = 60
_LOST_SECONDS = 5  # The same where all workers were lost.
# Exit statuses of docs/clusters.md.
_KILLED, _RESTART, _STOPPED = 137, 138, 143
_EXEC_WITH_PARENT = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                 "exec_with_parent.py")
# In the folder of a run: tells nodes that see this folder from others.
_MARKER = ".ray_run"


def _extract(archive, folder):
    # Old versions of Python have no filters. Both ends are this program.
    options = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        tar.extractall(folder, **options)


class Task:
    """A task of the job on a node of Ray. An actor."""

    def __init__(self):
        self._process = None
        self._folder = None
        self._copied = False
        self._output = []
        self._lock = threading.Lock()

    def prepare(self, marker, folder, archive):
        """Makes the folder of the run visible on this node. Returns (host, port, is_copy)."""
        try:
            with open(os.path.join(folder, _MARKER), encoding="ascii") as file:
                is_visible = file.read() == marker
        except OSError:
            is_visible = False
        self._folder = folder
        if not is_visible:
            self._copied = True
            self._folder = tempfile.mkdtemp(prefix="muster-ray-")
            _extract(archive, self._folder)
        host = ray.util.get_node_ip_address()
        with socket.socket() as free:
            free.bind((host, 0))
            return host, free.getsockname()[1], self._copied

    def run(self, launch, arguments, environment, exec_with_parent):
        """Runs `launch --task` until it ends. Returns its exit status.

        Args:
          exec_with_parent: the source of exec_with_parent.py.
        """
        path = next((one for one in (launch, shutil.which("muster-launch"), shutil.which("launch"))
                     if one and os.path.exists(one)), None)
        if path is None:
            self._add(f"launch: there is no {launch} on {socket.gethostname()}, and the wheel of "
                      "muster is not installed there")
            return 2
        values = {**os.environ, **environment, "MUSTER_RUN_DIR": self._folder}
        if "MUSTER_TLS_DIR" in values:
            values["MUSTER_TLS_DIR"] = os.path.join(self._folder, "tls")
        # The task ends with this process.
        command = [sys.executable, "-I", "-S", "-c", exec_with_parent, str(os.getpid()), path,
                   "--task", f"--job={os.path.join(self._folder, 'model.job')}", *arguments]
        self._process = subprocess.Popen(command, env=values, stdin=subprocess.DEVNULL,
                                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        for line in self._process.stdout:
            self._add(line.decode("utf-8", "replace").rstrip("\n"))
        status = self._process.wait()
        return 128 - status if status < 0 else status

    def _add(self, line):
        with self._lock:
            self._output.append(line)

    def take_output(self):
        """Returns the lines that the task has printed since the last call."""
        with self._lock:
            lines, self._output = self._output, []
        return lines

    def signal(self, number):
        """Sends a signal to the task, if it runs."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(number)

    def results(self):
        """Returns a tar archive of what the task has written, or None if the folder is shared."""
        if not self._copied:
            return None
        archive = io.BytesIO()
        with tarfile.open(fileobj=archive, mode="w") as tar:
            for name in sorted(os.listdir(self._folder)):
                if name not in ("data", "tls", "model.keras", "model.job", _MARKER):
                    tar.add(os.path.join(self._folder, name), name)
        return archive.getvalue()

    def close(self):
        """Removes the copy of the folder."""
        self.signal(signal.SIGKILL)
        if self._copied:
            shutil.rmtree(self._folder, ignore_errors=True)


def _roles(workers, ps):
    """Returns (type, index) of all tasks. The first one leads the job."""
    chief = [("chief", 0)] if ps else []
    return [*chief, *(("worker", index) for index in range(workers)),
            *(("ps", index) for index in range(ps))]


class _Run:
    """A job on Ray.

    Args:
      fields: the specification.
    """

    def __init__(self, fields):
        self._fields = fields
        self._folder = fields["folder"]
        self._roles = _roles(fields["workers"], fields["ps"])
        self._marker = uuid.uuid4().hex
        self._tasks = []
        self._lead_has_copy = False
        self._signals = []
        self._signal_count = 0
        self._started = time.time()

    def request_end(self, *_):
        """The handler of SIGINT and SIGTERM."""
        self._signals.append(1)

    def run(self):
        """Returns the exit status of the job."""
        with open(os.path.join(self._folder, _MARKER), "w", encoding="ascii") as file:
            file.write(self._marker)
        os.makedirs(os.path.join(self._folder, "logs"), exist_ok=True)
        self._make_certificates()
        archive = ray.put(self._archive())
        for attempt in range(self._fields["restarts"] + 1):
            group = self._place()
            try:
                status = self._run_once(archive)
            finally:
                ray.wait([task.close.remote() for task in self._tasks],
                         num_returns=len(self._tasks), timeout=10)
                ray.util.remove_placement_group(group)
            if status not in (_KILLED, _RESTART) or self._signal_count:
                break
            if self._has_result():
                return 0  # The others have ended the job without the task that was lost.
            print(f"attempt {attempt}: a task was lost, status {status}", flush=True)
        return status

    def _has_result(self):
        path = os.path.join(self._folder, "summary.json")
        return os.path.exists(path) and os.path.getmtime(path) >= self._started

    def _make_certificates(self):
        if "--insecure" in self._fields["launch_options"]:
            return
        done = subprocess.run(
            [self._fields["musterctl"], "gen-certs", f"--job_id=ray-{self._marker}",
             f"--chiefs={int(self._fields['ps'] > 0)}", f"--workers={self._fields['workers']}",
             f"--ps={self._fields['ps']}", f"--out={os.path.join(self._folder, 'tls')}"],
            capture_output=True, text=True, check=False, timeout=120)
        if done.returncode != 0:
            sys.exit(f"musterctl: {done.stderr.strip()}")

    def _archive(self):
        archive = io.BytesIO()
        with tarfile.open(fileobj=archive, mode="w") as tar:
            tar.add(self._folder, ".")
        return archive.getvalue()

    def _options(self, role):
        return {"num_cpus": 1, **self._fields["worker_options" if role == "worker"
                                              else "server_options"]}

    def _place(self):
        """Has Ray place an actor for each task, all of them or none. Returns the group."""
        options = [self._options(role) for role, _ in self._roles]
        bundles = [{"CPU": one["num_cpus"], **({"GPU": one["num_gpus"]} if one.get("num_gpus")
                                               else {}), **one.get("resources", {})}
                   for one in options]
        group = ray.util.placement_group(bundles, strategy=self._fields["placement"])
        ready, _ = ray.wait([group.ready()], timeout=self._fields["timeout_seconds"])
        if not ready:
            ray.util.remove_placement_group(group)
            sys.exit(f"Ray has not placed tasks with {bundles} within "
                     f"{self._fields['timeout_seconds']} s; the cluster has "
                     f"{ray.cluster_resources()}, of which {ray.available_resources()} are free")
        strategy = ray.util.scheduling_strategies.PlacementGroupSchedulingStrategy
        self._tasks = [
            ray.remote(Task).options(**one, max_concurrency=4, scheduling_strategy=strategy(
                group, placement_group_bundle_index=index)).remote()
            for index, one in enumerate(options)]
        return group

    def _run_once(self, archive):
        """Runs all tasks once. Returns the status of the job."""
        places = ray.get([task.prepare.remote(self._marker, self._folder, archive)
                          for task in self._tasks], timeout=self._fields["timeout_seconds"])
        self._lead_has_copy = places[0][2]
        if self._lead_has_copy and self._fields["needs_shared_folder"]:
            sys.exit(f"the node of the {self._roles[0][0]} does not see {self._folder}; callbacks "
                     "that are Python code, and batches of generators, need a run_dir that the "
                     "nodes share")
        cluster = {}
        for (role, _), (host, port, _) in zip(self._roles, places):
            cluster.setdefault(role, []).append(f"{host}:{port}")
        runs = []
        with open(_EXEC_WITH_PARENT, encoding="utf-8") as file:
            exec_with_parent = file.read()
        for (role, index), task in zip(self._roles, self._tasks):
            environment = {"TF_CONFIG": json.dumps(
                {"cluster": cluster, "task": {"type": role, "index": index}}),
                "MUSTER_SERVER_RETURN_TIMEOUT": "0"}
            if "--insecure" not in self._fields["launch_options"]:
                environment["MUSTER_TLS_DIR"] = "tls"  # Below the folder of the node.
            runs.append(task.run.remote(self._fields["launch"], self._fields["launch_options"],
                                        environment, exec_with_parent))
        statuses = self._wait(runs)
        self._fetch()
        return self._verdict(statuses)

    def _wait(self, runs):
        """Returns the exit statuses of all tasks."""
        statuses = [None] * len(runs)
        ends = None
        while None in statuses:
            ready, _ = ray.wait([run for run, status in zip(runs, statuses) if status is None],
                                timeout=_POLL_SECONDS)
            for run in ready:
                statuses[runs.index(run)] = self._status_of(run)
            self._show_output()
            self._pass_signals()
            if ends is None and self._job_has_ended(statuses):
                # A chief without workers waits for others, which do not come.
                is_lost = statuses[0] is None and 0 not in statuses
                ends = time.monotonic() + (_LOST_SECONDS if is_lost else _END_SECONDS_MAX)
            if ends is not None and time.monotonic() > ends:
                self._send(signal.SIGKILL)
                ends = float("inf")
        self._show_output()
        return statuses

    def _job_has_ended(self, statuses):
        workers = [status for (role, _), status in zip(self._roles, statuses) if role == "worker"]
        return statuses[0] is not None or None not in workers

    @staticmethod
    def _status_of(run):
        try:
            return ray.get(run)
        except ray.exceptions.RayError:
            return _KILLED  # The node, or the actor, was lost.

    def _show_output(self):
        for (role, index), task in zip(self._roles, self._tasks):
            name = role if role == "chief" else f"{role} {index}"
            try:
                lines = ray.get(task.take_output.remote(), timeout=10)
            except ray.exceptions.RayError:
                continue
            if not lines:
                continue
            path = os.path.join(self._folder, "logs", name.replace(" ", "-") + ".log")
            with open(path, "a", encoding="utf-8") as file:
                file.write("".join(line + "\n" for line in lines))
            print("".join(f"{name} | {line}\n" for line in lines), end="", flush=True)

    def _pass_signals(self):
        while self._signals:
            self._signals.pop()
            self._signal_count += 1
            self._send(signal.SIGTERM if self._signal_count == 1 else signal.SIGKILL)

    def _send(self, number):
        for task in self._tasks:
            task.signal.remote(number)

    def _fetch(self):
        """Copies the results from the node of the task that leads the job."""
        if not self._lead_has_copy:
            return
        try:
            archive = ray.get(self._tasks[0].results.remote())
        except ray.exceptions.RayError:
            return  # The node was lost, so the job has no result.
        _extract(archive, self._folder)

    def _verdict(self, statuses):
        """Returns the status of the job, and says which task has failed."""
        lead = statuses[0]
        if lead == 0:
            return 0
        # What others report as a lost task has its cause in another one.
        causes = [index for index, status in enumerate(statuses)
                  if status not in (0, _RESTART, _STOPPED)] or [0]
        role, index = self._roles[causes[0]]
        name = role if role == "chief" else f"{role} {index}"
        print(f"launch | the job has failed: {name} exited with status {statuses[causes[0]]}",
              flush=True)
        return _RESTART if _KILLED in statuses else lead


def _check_reachable(address):
    """Ends the program if nothing listens on an address HOST:PORT: ray.init() would wait."""
    host, colon, port = address.rpartition(":")
    if not colon or not port.isdigit():
        return
    try:
        socket.create_connection((host, int(port)), timeout=10).close()
    except OSError as error:
        sys.exit(f"Ray's address {address} cannot be reached: {error}")


def main(fields):
    run = _Run(fields)
    _check_reachable(fields["address"])
    ray.init(address=fields["address"], log_to_driver=False, logging_level="WARNING")
    for number in (signal.SIGINT, signal.SIGTERM):  # In place of the handlers of Ray.
        signal.signal(number, run.request_end)
    return run.run()


if __name__ == "__main__":
    sys.exit(main(json.loads(sys.argv[1])))
