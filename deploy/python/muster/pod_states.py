"""What the objects of Kubernetes say about the tasks of a job. Pure functions."""

# Reasons with which a container waits that do not go away by themselves.
_WRONG_IMAGE = ("ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull",
                "ImageInspectError", "RegistryUnavailable")
_WRONG_CONTAINER = ("CreateContainerConfigError", "CreateContainerError", "RunContainerError",
                    "CrashLoopBackOff")
# Exit statuses of docs/clusters.md: a task that another one has made end.
_CONSEQUENCES = (0, 138, 143)


def task_of(pod, name):
    """Returns the task of a pod of the job `name`, such as "worker-0", or None."""
    host = pod["spec"].get("hostname", "")
    return host[len(name) + 1:] if host.startswith(f"{name}-") else None


def shown(task):
    """Returns the name of a task in messages: "worker 0", or "chief"."""
    role, _, index = task.rpartition("-")
    return "chief" if role == "chief" else f"{role} {index}"


def _containers(pod):
    return pod["status"].get("containerStatuses", [])


def has_started(pod):
    """True if a container of the pod runs or has run."""
    return any("running" in status["state"] or "terminated" in status["state"]
               for status in _containers(pod))


def is_running(pod):
    """True if all containers run, and the pod is not being deleted."""
    statuses = _containers(pod)
    return bool(statuses) and "deletionTimestamp" not in pod["metadata"] and all(
        "running" in status["state"] for status in statuses)


def has_ended(pod):
    """True if no container of the pod runs or will run."""
    return pod["status"].get("phase") in ("Succeeded", "Failed")


def waiting_reason(pod):
    """Returns why a pod has not started, or "" if it has started or the reason is not known."""
    for status in _containers(pod):
        waiting = status["state"].get("waiting")
        if waiting and waiting.get("reason") not in (None, "ContainerCreating",
                                                     "PodInitializing"):
            message = " ".join(waiting.get("message", "").split())
            return f"{waiting['reason']}: {message}" if message else waiting["reason"]
    for condition in pod["status"].get("conditions", []):
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            return condition.get("message") or condition.get("reason", "")
    return ""


def blocking_reason(pod):
    """Returns why a pod cannot start without help, with what to do, or ""."""
    reason = waiting_reason(pod)
    kind = reason.split(":")[0]
    image = next((one["image"] for one in pod["spec"]["containers"]), "")
    if kind in _WRONG_IMAGE:
        return (f"the image {image} cannot be pulled ({reason}). Check its name, push it to a "
                "registry that the cluster reaches, and set pull_secret if the registry needs a "
                "login")
    if kind in _WRONG_CONTAINER:
        return f"the container cannot be started ({reason})"
    return ""


def pending_advice(reason):
    """Returns what to do about a pod that is not scheduled for a reason, or ""."""
    if "PersistentVolumeClaim" in reason or "persistentvolumeclaim" in reason:
        return ("The volume cannot be made: set storage_class to a class with this access_mode "
                "(kubectl get storageclasses), or storage to a URL of an object store")
    if "Insufficient" in reason or "didn't match" in reason or "taint" in reason:
        return ("No node has room: ask for less with worker_resources and server_resources, or "
                "wait with a larger timeout_seconds")
    return ""


def exit_of(pod):
    """Returns (exit status, reason) of a container that has ended, or None.

    The reason is that of Kubernetes, such as "OOMKilled".
    """
    for status in _containers(pod):
        ended = status["state"].get("terminated")
        if ended:
            return ended["exitCode"], ended.get("reason", "")
    return None


def _end_time(pod):
    return max((status["state"].get("terminated", {}).get("finishedAt") or ""
                for status in _containers(pod)), default="")


def cause(pods):
    """Returns the pod whose end has made the job fail, or None.

    That is the first pod that has ended by itself: tasks that lost another one follow.
    """
    ended = [pod for pod in pods if exit_of(pod) is not None and exit_of(pod)[0] != 0]
    causes = [pod for pod in ended if exit_of(pod)[0] not in _CONSEQUENCES] or ended
    return min(causes, key=_end_time) if causes else None


def condition(job, kind):
    """Returns the condition of a Job, such as "Complete" or "Failed", if it is true."""
    return next((one for one in job["status"].get("conditions", [])
                 if one["type"] == kind and one["status"] == "True"), None)
