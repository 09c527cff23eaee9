"""The objects of a job on Kubernetes: those that `launch --kubernetes` prints, and Secrets and the
pod through which files are copied. Pure functions."""

import base64
import copy

FILES = "files"  # The role of the pod through which files are copied.
# Variables of the environment with which tasks find an object store.
STORAGE_VARIABLES = (
    "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_REGION",
    "AWS_DEFAULT_REGION", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "GS_ACCESS_KEY_ID",
    "GS_SECRET_ACCESS_KEY", "GS_ENDPOINT_URL")
_MUSTERCTL = "/usr/bin/musterctl"
_FILES_RESOURCES = {"cpu": "100m", "memory": "256Mi"}
# Objects that start tasks. They need the files.
_STARTING = ("Job",)


def labels(name):
    return {"app.kubernetes.io/name": "muster", "muster/job": name}


def secret(name, job, data):
    """Returns a Secret of a job.

    Args:
      data: {key: bytes}.
    """
    return {"apiVersion": "v1", "kind": "Secret",
            "metadata": {"name": name, "labels": labels(job)},
            "data": {key: base64.b64encode(value).decode() for key, value in data.items()}}


def _with_resources(resources, more):
    return {part: {**resources.get(part, {}), **{name: str(value) for name, value in more.items()}}
            for part in ("requests", "limits")}


def adapted(objects, fields):
    """Returns objects of `launch --kubernetes` with the fields of muster.Kubernetes that `launch`
    has no flags for."""
    changed = []
    for one in copy.deepcopy(objects):
        if one["kind"] == "PersistentVolumeClaim":
            one["spec"]["accessModes"] = [fields["access_mode"]]
            if fields["storage_class"]:
                one["spec"]["storageClassName"] = fields["storage_class"]
        if one["kind"] == "Job":
            pod = one["spec"]["template"]["spec"]
            if fields["pull_secret"]:
                pod["imagePullSecrets"] = [{"name": fields["pull_secret"]}]
            is_worker = one["metadata"]["labels"]["muster/role"] == "worker"
            more = fields["worker_resources" if is_worker else "server_resources"]
            for container in pod["containers"]:
                container["resources"] = _with_resources(container["resources"], more)
        changed.append(one)
    return changed


def parts(objects):
    """Returns (objects without which no task can start, objects that start tasks)."""
    return ([one for one in objects if one["kind"] not in _STARTING],
            [one for one in objects if one["kind"] in _STARTING])


def has_volume(objects):
    return any(one["kind"] == "PersistentVolumeClaim" for one in objects)


def grace_seconds(objects):
    """Returns how long the tasks of Jobs may take to save and end."""
    return max(one["spec"]["template"]["spec"].get("terminationGracePeriodSeconds", 30)
               for one in objects if one["kind"] == "Job")


def files_pod(objects, name):
    """Returns a pod that has the volume of the run and does nothing.

    It is the pod of a task with another command, so that the image, the user and the permissions
    are the same.
    """
    job = next(one for one in objects if one["kind"] == "Job")
    pod = copy.deepcopy(job["spec"]["template"]["spec"])
    kept = ("run", "tmp")
    container = pod["containers"][0]
    pod["containers"] = [{
        "name": container["name"], "image": container["image"],
        "securityContext": container["securityContext"],
        "command": [_MUSTERCTL], "args": ["sleep"],
        "resources": {"requests": _FILES_RESOURCES, "limits": _FILES_RESOURCES},
        "volumeMounts": [one for one in container["volumeMounts"] if one["name"] in kept]}]
    pod["volumes"] = [one for one in pod["volumes"] if one["name"] in kept]
    for field in ("subdomain", "hostname", "schedulerName", "topologySpreadConstraints"):
        pod.pop(field, None)
    pod["restartPolicy"] = "Always"
    pod["terminationGracePeriodSeconds"] = 10
    return {"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": f"{name}-{FILES}",
                         "labels": {**labels(name), "muster/role": FILES}},
            "spec": pod}


def kinds(objects):
    """Returns the names of the kinds of objects, for kubectl."""
    return sorted({one["kind"].lower() for one in objects} | {"pod", "secret", "job"})
