"""Where the processes of fit() run on Kubernetes: muster.Kubernetes."""

import dataclasses
import os
import re
import secrets
import shutil
from typing import Optional

from muster import output_files
from muster.clusters import Cluster, follow_kubernetes, output, protected, record
from muster.executables import find_musterctl

_URL = re.compile(r"(s3|gs)://[^/]+/.+")
_SIZE = re.compile(r"[0-9]+(\.[0-9]+)?([KMGTPE]i?|k)?")
_NAME = re.compile(r"[a-z]([a-z0-9-]{0,38}[a-z0-9])?")
_ACCESS_MODES = ("ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
# Options of `launch` that follow from the fields of the class, or with which the job could not be
# followed.
_OWN_OPTIONS = ("--image", "--name", "--run_dir", "--storage", "--workload", "--ttl", "--job",
                "--workers", "--ps", "--kubernetes", "--slurm", "--data_root")
_VOLUME = "/run/muster"  # Where `launch --kubernetes` mounts the volume of the run.
# Folders of the volume, or below the URL.
_INPUT, _RUN = "input", "run"
_EVENTS = "events"  # Below _RUN, where parameter servers may write weights.
# In the folder of the run on this machine: what follow_kubernetes.py needs and writes.
_FOLDER = "kubernetes"


@dataclasses.dataclass(frozen=True)
class Kubernetes(Cluster):
    """Pods of a job on Kubernetes. The job goes on without this process.

    Needs kubectl. Model and data are copied into a volume or an object store, and the result is
    copied back, so no disk is shared. What was made is deleted at the end of the run.

    Args:
      workers, ps: as for Local.
      image: of Muster, such as "registry.example.org/muster:1" (docs/kubernetes.md).
      namespace, context: of kubectl. None: its current ones.
      name: of the job, which must be new. None: one is chosen.
      storage: the size of the volume that is made for the run, such as "10Gi"; or the URL of a
        new folder of an object store, such as "s3://bucket/run_1". The tasks get the access
        keys for it from this process's environment: AWS_ACCESS_KEY_ID and others.
      storage_class: of the volume. None: the default one of the cluster.
      access_mode: of the volume. "ReadWriteOnce" is for clusters with one node.
      worker_resources, server_resources: of each pod, for workers, and for parameter servers and
        the chief, such as {"cpu": "4", "memory": "8Gi", "nvidia.com/gpu": 1}.
      pull_secret: the Secret with which Kubernetes pulls the image, or None.
      launch_options: of `launch --kubernetes`, such as ["--queue=training"]. Tasks speak TLS with
        certificates of the run, unless this has --insecure.
      timeout_seconds: how long Kubernetes may take to start all pods.
    """

    workers: int
    ps: int = 0
    image: str = ""
    namespace: Optional[str] = None
    context: Optional[str] = None
    name: Optional[str] = None
    storage: str = "10Gi"
    storage_class: Optional[str] = None
    access_mode: str = "ReadWriteMany"
    worker_resources: dict = dataclasses.field(default_factory=dict)
    server_resources: dict = dataclasses.field(default_factory=dict)
    pull_secret: Optional[str] = None
    launch_options: tuple = ()
    timeout_seconds: float = 600

    outlives_python = True
    can_stream = False

    @property
    def _is_in_object_store(self):
        return _URL.fullmatch(self.storage) is not None

    def check(self, run_dir):
        """Raises ValueError unless all fields are valid and kubectl is installed."""
        del run_dir

        def refuse(name, expected):
            raise ValueError(f"cluster=Kubernetes has {name}={getattr(self, name)!r}; expected "
                             f"{expected}")

        for name in ("namespace", "context", "name", "storage_class", "pull_secret"):
            value = getattr(self, name)
            if value is not None and (not isinstance(value, str) or not value):
                refuse(name, "a name or None")
        if not isinstance(self.image, str) or not self.image:
            refuse("image", 'the image of Muster, such as "registry.example.org/muster:1"')
        if self.name is not None and not _NAME.fullmatch(self.name):
            refuse("name", "at most 40 lower-case letters, digits and '-'")
        if not isinstance(self.storage, str) or not (_SIZE.fullmatch(self.storage)
                                                     or self._is_in_object_store):
            refuse("storage", 'a size such as "10Gi", or a URL such as "s3://bucket/run_1"')
        if self._is_in_object_store and not any(
                name in os.environ for name in ("AWS_ACCESS_KEY_ID", "GS_ACCESS_KEY_ID")):
            raise ValueError(f"cluster=Kubernetes has storage={self.storage!r}, but the "
                             "environment has no AWS_ACCESS_KEY_ID or GS_ACCESS_KEY_ID; pods do "
                             "not see files such as ~/.aws/credentials")
        if self.access_mode not in _ACCESS_MODES:
            refuse("access_mode", f"one of {', '.join(_ACCESS_MODES)}")
        for name in ("worker_resources", "server_resources"):
            if not isinstance(getattr(self, name), dict):
                refuse(name, 'a dict such as {"cpu": "4", "memory": "8Gi"}')
        if not isinstance(self.timeout_seconds, (int, float)) or not self.timeout_seconds > 0:
            refuse("timeout_seconds", "a number above 0")
        for option in self.launch_options:
            if option.split("=")[0] in _OWN_OPTIONS:
                raise ValueError(f"cluster=Kubernetes has {option} in launch_options; this "
                                 "follows from the other fields")
        if shutil.which("kubectl") is None:
            raise ValueError("cluster=Kubernetes needs kubectl, which is not in $PATH. Install it, "
                             "and log in to the cluster: kubectl get pods")

    def _place(self, folder):
        """Returns where the tasks have a folder of the run."""
        return f"{self.storage if self._is_in_object_store else _VOLUME}/{folder}"

    def placed(self, fields, folder):
        """Returns the fields of a job file whose files are in the volume or the object store."""
        own = os.path.join(folder, _FOLDER)
        os.makedirs(own)
        fields = {**fields, "callbacks": output_files.placed(fields["callbacks"], own)}
        for callback in fields["callbacks"]:
            if "external" in callback:
                external = callback["external"]
                _write_marker(os.path.join(own, _EVENTS, os.path.basename(external["directory"])))
                callback["external"] = _with_job_dir(external, self._place(f"{_RUN}/{_EVENTS}"))
        for part in ("train", "validation"):
            fields[part] = _with_copied_csv(fields[part], folder, f"{part}.csv")
        return _with_job_dir(fields, self._place(_INPUT))

    def start(self, job):
        """Writes the manifests of a Job. Returns a command that submits it and shows its log.

        Raises:
          ValueError: callbacks cannot be served with an object store.
          MusterError: `launch` refuses the job; says why.
        """
        if job.needs_shared_folder and self._is_in_object_store:
            raise ValueError("callbacks that are Python code need a volume; expected a size as "
                             f"storage of cluster=Kubernetes, not {self.storage}")
        name = self.name or f"muster-{secrets.token_hex(4)}"
        options = protected(self.launch_options)
        # Workers of parameter servers read only below these folders.
        options.append(f"--data_root={self._place(_INPUT)},{self._place(_RUN)}")
        storage = [f"--run_dir={self._place(_RUN)}"] if self._is_in_object_store else [
            f"--run_dir={_RUN}", f"--storage={self.storage}"]
        manifests = output([*job.command(self.workers, self.ps), "--kubernetes", f"--name={name}",
                            f"--image={self.image}", *storage, *options])
        own = os.path.join(job.folder, _FOLDER)
        with open(os.path.join(own, "manifests.yaml"), "w", encoding="utf-8") as file:
            file.write(manifests)
        musterctl = find_musterctl(job.launch)
        if "--insecure" not in options:
            output([musterctl, "gen-certs", f"--job_id={name}", f"--chiefs={int(self.ps > 0)}",
                    f"--workers={self.workers}", f"--ps={self.ps}",
                    f"--out={os.path.join(own, 'tls')}"])
        record(job.folder, {"kubernetes": {
            **dataclasses.asdict(self), "name": name, "musterctl": musterctl,
            "is_in_object_store": self._is_in_object_store,
            "input": self._place(_INPUT), "run": self._place(_RUN),
            "events": self._place(f"{_RUN}/{_EVENTS}"),
            "has_own_callbacks": job.needs_shared_folder}})
        return follow_kubernetes(job.folder)


def _write_marker(folder):
    """Makes a folder that is copied to the cluster. Folders without files are not copied."""
    os.makedirs(folder)
    with open(os.path.join(folder, "marker"), "w", encoding="utf-8"):
        pass


def _with_copied_csv(source, folder, name):
    """Returns the fields of a data set whose .csv file, if it has one, is in the folder."""
    if not source or "csv" not in source:
        return source
    os.makedirs(os.path.join(folder, "data"), exist_ok=True)
    shutil.copyfile(source["csv"]["path"], os.path.join(folder, "data", name))
    return {**source, "csv": {**source["csv"], "path": "${job_dir}/data/" + name}}


def _with_job_dir(value, place):
    """Returns fields with a place instead of the variable ${job_dir}."""
    if isinstance(value, dict):
        return {name: _with_job_dir(one, place) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_with_job_dir(one, place) for one in value]
    if isinstance(value, str) and value.startswith("${job_dir}"):
        return place + value[len("${job_dir}"):]
    return value
