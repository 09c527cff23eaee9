"""Where the processes of fit() run: the argument `cluster`."""

import dataclasses
import importlib.util
import json
import os
import subprocess
import sys

from muster.errors import MusterError
from muster.executables import find_musterctl

_HERE = os.path.dirname(os.path.abspath(__file__))
# In the folder of a run: what attach() needs.
_RECORD = "cluster.json"
_PLACEMENTS = ("PACK", "SPREAD", "STRICT_PACK", "STRICT_SPREAD")


@dataclasses.dataclass(frozen=True)
class Job:
    """A job to run.

    Attributes:
      launch: path of the executable.
      path: of the job file.
      folder: of the run, or of a written job.
      is_temporary: True if the user has not named the folder.
      needs_shared_folder: True if this process exchanges files with the tasks while they run.
      output_folders: where callbacks write, which parameter servers must be allowed to do.
    """

    launch: str
    path: str
    folder: str
    is_temporary: bool
    needs_shared_folder: bool
    output_folders: tuple = ()

    def command(self, workers, ps):
        """Returns the arguments of `launch` that each way to run the job begins with."""
        command = [self.launch, f"--job={self.path}", f"--workers={workers}", f"--ps={ps}"]
        if not ps or not self.output_folders:
            return command
        roots = [os.getcwd(), self.folder, *self.output_folders]
        return [*command, f"--checkpoint_root={','.join(roots)}"]


class Cluster:
    """What all clusters have.

    Attributes:
      outlives_python: True if the job goes on when this process has ended.
      can_stream: True if batches can be drawn while the cluster trains. Otherwise all are drawn
        before.
    """

    outlives_python = False
    can_stream = True

    def check(self, run_dir):
        """Raises ValueError unless a run can have this folder."""

    def placed(self, fields, folder):
        """Returns the fields of a job file as the tasks need them.

        Args:
          folder: of the run on this machine, where the job file, model and data are.
        """
        del folder
        return fields


@dataclasses.dataclass(frozen=True)
class Local(Cluster):
    """Processes on this machine. They end when this process ends.

    Args:
      workers, ps: number of processes that train, and number of parameter servers.
      min_workers: workers that train in sync continue without a lost one, which is started again
        and joins them, as long as this many are left; 0: the loss of a worker ends training.
    """

    workers: int = 0
    ps: int = 0
    min_workers: int = 0

    def start(self, job):
        """Returns a command that runs a Job until its end."""
        continues = [f"--min_workers={self.min_workers}", "--restart"] if self.min_workers else []
        return [*job.command(self.workers, self.ps), f"--run_dir={job.folder}", *continues,
                *(["--temporary_run_dir"] if job.is_temporary else [])]


@dataclasses.dataclass(frozen=True)
class Slurm(Cluster):
    """Tasks of a job that is submitted to Slurm. The job goes on without this process.

    fit() needs run_dir, a folder that the nodes share, and Muster's executables on the same
    path of each node.

    Args:
      workers, ps: as for Local.
      options: of sbatch, such as ["--partition=main", "--nodes=2", "--time=60"].
      launch_options: of `launch --slurm`, such as ["--task_gpus=1"]. Tasks speak TLS with
        certificates of the run, unless this has --insecure.
    """

    workers: int
    ps: int = 0
    options: tuple = ()
    launch_options: tuple = ()

    outlives_python = True

    def check(self, run_dir):
        """Raises ValueError unless a run can have this folder."""
        if run_dir is None:
            raise ValueError("cluster=Slurm needs run_dir, a folder that all nodes share")

    def start(self, job):
        """Submits a Job. Returns a command that shows its log until its end.

        Raises:
          MusterError: Slurm, or `launch`, refuses the job; says why.
        """
        options = protected(self.launch_options)
        folder = job.folder
        script = output([*job.command(self.workers, self.ps), "--slurm", f"--run_dir={folder}",
                          f"--name={os.path.basename(folder)}", *options])
        script_path = os.path.join(folder, "job.sbatch")
        with open(script_path, "w", encoding="utf-8") as file:
            file.write(script)
        log = os.path.join(folder, "slurm.log")
        job_id = output(["sbatch", "--parsable", f"--output={log}", *self.options,
                          script_path]).strip().split(";")[0]
        record(folder, {"slurm": {"job_id": job_id, "log": log}})
        return _follow_slurm(job_id, log)


def check_counts(cluster):
    """Raises ValueError unless the numbers of processes and the options can be used."""
    kind = type(cluster).__name__
    for name, least in (("workers", 0 if kind == "Local" else 1), ("ps", 0)):
        value = getattr(cluster, name)
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise ValueError(f"cluster={kind} has {name}={value!r}; expected an integer of at "
                             f"least {least}")
    min_workers = getattr(cluster, "min_workers", 0)
    if isinstance(min_workers, bool) or not isinstance(min_workers, int) \
            or not 0 <= min_workers <= cluster.workers:
        raise ValueError(f"cluster={kind} has min_workers={min_workers!r}; expected 0 to "
                         f"{cluster.workers}, the number of workers")
    for name in ("options", "launch_options"):
        value = getattr(cluster, name, ())
        if isinstance(value, str) or not all(isinstance(one, str) for one in value):
            raise ValueError(f"cluster={kind} has {name}={value!r}; expected a list of options, "
                             'such as ["--insecure"]')


def protected(launch_options):
    """Returns options of `launch` that have tasks speak TLS, unless they have --insecure."""
    options = list(launch_options)
    if "--insecure" not in options and not any(one.startswith("--tls") for one in options):
        options.append("--tls=auto")
    return options


def _follow_slurm(job_id, log):
    return [sys.executable, "-I", "-S", os.path.join(_HERE, "follow_slurm.py"), job_id, log]


@dataclasses.dataclass(frozen=True)
class Ray(Cluster):
    """Tasks that a cluster of Ray places, each with an actor. They end with this process.

    Nodes that do not see the folder of the run get a copy of it. Each node needs Muster's
    wheel, or its executables on the same path as here.

    Args:
      workers, ps: as for Local.
      address: of the cluster. "auto": that of the machine, or of $RAY_ADDRESS.
      worker_options, server_options: of the actors, such as {"num_cpus": 4, "num_gpus": 1},
        for workers, and for parameter servers and the chief.
      placement: the strategy of the placement group: "PACK", "SPREAD", "STRICT_PACK" or
        "STRICT_SPREAD".
      launch_options: of the tasks. They speak TLS with certificates of the run, unless this
        has --insecure.
      restarts: how often all tasks are started again after one was lost.
      timeout_seconds: how long Ray may take to place all tasks.
    """

    workers: int
    ps: int = 0
    address: str = "auto"
    worker_options: dict = dataclasses.field(default_factory=dict)
    server_options: dict = dataclasses.field(default_factory=dict)
    placement: str = "PACK"
    launch_options: tuple = ()
    restarts: int = 10
    timeout_seconds: float = 600

    def check(self, run_dir):
        """Raises ValueError unless a run can have this folder."""
        del run_dir
        for name, expected in (("address", str), ("worker_options", dict),
                               ("server_options", dict)):
            if not isinstance(getattr(self, name), expected):
                raise ValueError(f"cluster=Ray has {name}={getattr(self, name)!r}; expected a "
                                 f"{expected.__name__}")
        if self.placement not in _PLACEMENTS:
            raise ValueError(f"cluster=Ray has placement={self.placement!r}; expected one of "
                             f"{', '.join(_PLACEMENTS)}")
        if isinstance(self.restarts, bool) or not isinstance(self.restarts, int) \
                or self.restarts < 0:
            raise ValueError(f"cluster=Ray has restarts={self.restarts!r}; expected an integer of "
                             "at least 0")
        if not isinstance(self.timeout_seconds, (int, float)) or not self.timeout_seconds > 0:
            raise ValueError(f"cluster=Ray has timeout_seconds={self.timeout_seconds!r}; expected "
                             "a number above 0")
        if importlib.util.find_spec("ray") is None:
            raise ValueError("cluster=Ray needs Ray: pip install ray")

    def start(self, job):
        """Returns a command that runs a Job until its end."""
        fields = {**dataclasses.asdict(self), "launch": job.launch, "folder": job.folder,
                  "musterctl": find_musterctl(job.launch),
                  "needs_shared_folder": job.needs_shared_folder}
        return [sys.executable, os.path.join(_HERE, "run_on_ray.py"), json.dumps(fields)]


def follow_kubernetes(folder):
    """Returns the command that submits and shows a job whose manifests are in a folder."""
    # Without -I, which would hide the modules beside the program.
    return [sys.executable, "-S", os.path.join(_HERE, "follow_kubernetes.py"), folder]


def output(command):
    """Runs a command. Returns what it prints.

    Raises:
      MusterError: it cannot be run, or fails; has its message.
    """
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              check=False, timeout=120)
    except FileNotFoundError:
        raise MusterError(f"there is no {command[0]} on this machine") from None
    except subprocess.TimeoutExpired:
        raise MusterError(f"{command[0]} has not ended within 120 s") from None
    if done.returncode != 0:
        raise MusterError(f"{os.path.basename(command[0])}: {done.stderr.strip()}",
                          done.returncode)
    return done.stdout


def record(folder, fields):
    """Writes what attach() needs into the folder of a run."""
    with open(os.path.join(folder, _RECORD), "w", encoding="utf-8") as file:
        json.dump(fields, file)


def following(folder):
    """Returns the command that shows a run which goes on without the process that began it.

    Raises:
      ValueError: the folder has no such run.
    """
    try:
        with open(os.path.join(folder, _RECORD), encoding="utf-8") as file:
            fields = json.load(file)
    except FileNotFoundError:
        raise ValueError(f"{folder} has no {_RECORD}: no run on a cluster began there") from None
    if "kubernetes" in fields:
        return follow_kubernetes(folder)
    return _follow_slurm(**fields["slurm"])
