"""A TensorFlow cluster of real processes on this machine, with this process as its chief."""

import contextlib
import ctypes
import json
import os
import signal
import socket
import subprocess
import sys
import traceback

PR_SET_PDEATHSIG = 1


def run_as_chief(body, worker_count, ps_count):
    """Starts workers and parameter servers, runs body() as their chief, and exits.

    TensorFlow connects a process to only one cluster, so a process measures one cluster. It
    exits without the clean-up of Python and TensorFlow, which would spend its time
    reporting that the killed servers do not answer.
    """
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    status = 1
    tasks = []
    try:
        _start(tasks, {"chief": 1, "worker": worker_count, "ps": ps_count})
        body()
        status = 0
    except Exception:
        traceback.print_exc()
    finally:
        for task in tasks:
            task.kill()
        for task in tasks:
            task.wait()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def serve():
    """The body of a worker or a parameter server: serves until it is killed."""
    # A chief that ends without cleaning up must not leave servers behind.
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)

    import tensorflow as tf

    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    server = tf.distribute.Server(
        resolver.cluster_spec(),
        job_name=resolver.task_type,
        task_index=resolver.task_id,
        protocol="grpc",
    )
    server.join()


def _start(tasks, counts):
    """Starts the servers and adds them to `tasks`; this process becomes the chief."""
    cluster = free_addresses(counts)
    for role in ("worker", "ps"):
        for index in range(counts[role]):
            environment = {**os.environ, "TF_CONFIG": _tf_config(cluster, role, index)}
            tasks.append(
                subprocess.Popen([sys.executable, os.path.abspath(__file__)], env=environment)
            )
    os.environ["TF_CONFIG"] = _tf_config(cluster, "chief", 0)


def free_addresses(counts):
    """Returns a free loopback port per task. All are reserved until the last one is found."""
    with contextlib.ExitStack() as held:
        addresses = {}
        for role, count in counts.items():
            addresses[role] = []
            for _ in range(count):
                probe = held.enter_context(socket.socket())
                probe.bind(("127.0.0.1", 0))
                addresses[role].append(f"127.0.0.1:{probe.getsockname()[1]}")
        return addresses


def _tf_config(cluster, role, index):
    return json.dumps({"cluster": cluster, "task": {"type": role, "index": index}})


if __name__ == "__main__":
    serve()
