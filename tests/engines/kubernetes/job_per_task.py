"""Rewrites manifests of `launch --kubernetes` for Kubernetes before 1.21, which has no Indexed
Jobs: each task becomes a Job whose template names the host.

The rest does not change, except for podFailurePolicy, which exists since 1.25: a Job of one task
replaces its pod for every exit status, up to backoffLimit times.

    job_per_task.py KUBECTL ARGUMENTS...

runs KUBECTL with these arguments, and does this with a list that it creates from standard input.
"""

import copy
import json
import os
import subprocess
import sys


def task_job(job, index):
    """Returns the Job for task `index` of an Indexed Job."""
    name = f"{job['metadata']['name']}-{index}"
    task = copy.deepcopy(job)
    task["metadata"]["name"] = name
    for field in ("completionMode", "podFailurePolicy"):
        task["spec"].pop(field, None)
    task["spec"].update(completions=1, parallelism=1)
    pod = task["spec"]["template"]["spec"]
    pod["hostname"] = name
    for container in pod["containers"]:
        container.setdefault("env", []).append(
            {"name": "JOB_COMPLETION_INDEX", "value": str(index)})
    return task


def rewrite(manifests):
    """Returns `manifests` with a Job for each task instead of Indexed Jobs."""
    rewritten = []
    for manifest in manifests:
        if manifest["kind"] == "Job":
            rewritten += [task_job(manifest, index)
                          for index in range(manifest["spec"]["completions"])]
        else:
            rewritten.append(manifest)
    return rewritten


def main(kubectl, arguments):
    if arguments[-2:] != ["create", "--filename=-"]:
        os.execv(kubectl, [kubectl, *arguments])
    manifests = json.load(sys.stdin)
    if manifests["kind"] == "List":
        manifests["items"] = rewrite(manifests["items"])
    return subprocess.run([kubectl, *arguments], input=json.dumps(manifests), text=True,
                          check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
