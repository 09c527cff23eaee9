"""The fields of custom resources that `launch --kubernetes` prints, and their types.

Names and types are from these projects, all under the Apache License 2.0:

    kubernetes-sigs/jobset                     api/jobset/v1alpha2/jobset_types.go
    kubeflow/trainer                           pkg/apis/trainer/v1alpha1/*_types.go
    prometheus-operator/prometheus-operator    pkg/apis/monitoring/v1/podmonitor_types.go
    kubernetes-sigs/scheduler-plugins          apis/scheduling/v1alpha1/types.go
    volcano-sh/apis                            pkg/apis/scheduling/v1beta1/types.go

A dict is an object: its keys are all fields that may occur. Fields with "!" are required.
A list contains the type of its elements, a set the allowed texts.
"""

REQUIRED = "!"
LABELS = {str: str}

JOB_SET_SPEC = {
    "network": {"enableDNSHostnames": bool, "subdomain": str,
                "publishNotReadyAddresses": bool},
    "successPolicy": {"!operator": {"All", "Any"}, "targetReplicatedJobs": [str]},
    "failurePolicy": {
        "maxRestarts": int,
        "restartStrategy": {"Recreate", "BlockingRecreate", "InPlaceRestart"},
        "rules": [{"!name": str,
                   "!action": {"FailJobSet", "RestartJobSet",
                               "RestartJobSetAndIgnoreMaxRestarts"},
                   "onJobFailureReasons": [{"BackoffLimitExceeded", "DeadlineExceeded",
                                            "FailedIndexes", "MaxFailedIndexesExceeded",
                                            "PodFailurePolicy"}],
                   "targetReplicatedJobs": [str]}]},
    "ttlSecondsAfterFinished": int,
    "suspend": bool,
    "replicatedJobs": [{"!name": str, "replicas": int,
                        "!template": {"metadata": {"labels": LABELS},
                                      # The spec of a Job, which has a separate schema.
                                      "!spec": object}}],
}

METADATA = {"!name": str, "labels": LABELS, "annotations": LABELS}

SPECS = {
    ("jobset.x-k8s.io/v1alpha2", "JobSet"): JOB_SET_SPEC,
    ("trainer.kubeflow.org/v1alpha1", "TrainingRuntime"): {
        "mlPolicy": {"numNodes": int},
        "podGroupPolicy": {"coscheduling": {"scheduleTimeoutSeconds": int},
                           "volcano": {}},
        "!template": {"metadata": METADATA, "!spec": JOB_SET_SPEC}},
    ("trainer.kubeflow.org/v1alpha1", "TrainJob"): {
        "!runtimeRef": {"!name": str, "apiGroup": str, "kind": str},
        "suspend": bool},
    ("monitoring.coreos.com/v1", "PodMonitor"): {
        "!selector": {"matchLabels": LABELS},
        "!podMetricsEndpoints": [{"port": str, "path": str, "interval": str,
                                  "scheme": {"http", "https"},
                                  "authorization": {
                                      "type": str,
                                      "credentials": {"name": str, "!key": str}}}]},
    ("scheduling.x-k8s.io/v1alpha1", "PodGroup"): {
        "minMember": int, "scheduleTimeoutSeconds": int},
    ("scheduling.volcano.sh/v1beta1", "PodGroup"): {
        "minMember": int, "priorityClassName": str, "queue": str},
}


def differences(value, expected, path):
    """Returns the differences from the expected type, as lines that begin with the path."""
    if isinstance(expected, dict) and str in expected:
        expected = {key: expected[str] for key in value} if isinstance(value, dict) else {}
    if isinstance(expected, dict):
        if not isinstance(value, dict):
            return [f"{path}: expected an object, got {value!r}"]
        types = {name.removeprefix(REQUIRED): kind for name, kind in expected.items()}
        lines = [f"{path}.{name[1:]}: missing" for name in expected
                 if name.startswith(REQUIRED) and name[1:] not in value]
        for name, field in value.items():
            lines += ([f"{path}.{name}: no such field"] if name not in types else
                      differences(field, types[name], f"{path}.{name}"))
        return lines
    if isinstance(expected, list):
        if not isinstance(value, list):
            return [f"{path}: expected a list, got {value!r}"]
        return [line for i, element in enumerate(value)
                for line in differences(element, expected[0], f"{path}[{i}]")]
    if isinstance(expected, set):
        return [] if value in expected else [f"{path}: {value!r} is none of {expected}"]
    is_right = isinstance(value, expected) and (
        expected is not int or not isinstance(value, bool))
    return [] if is_right else [f"{path}: expected {expected.__name__}, got {value!r}"]


def is_custom(manifest):
    return (manifest["apiVersion"], manifest["kind"]) in SPECS


def check(manifest):
    """Raises ValueError if a custom resource has invalid fields; the message lists them."""
    kind = (manifest["apiVersion"], manifest["kind"])
    lines = differences(manifest, {"!apiVersion": str, "!kind": str,
                                   "!metadata": METADATA, "!spec": SPECS[kind]},
                        manifest["kind"])
    if lines:
        raise ValueError("\n".join(lines))


def job_templates(manifest):
    """Returns the templates of Jobs in a JobSet or TrainingRuntime, by name."""
    if manifest["kind"] not in ("JobSet", "TrainingRuntime"):
        return {}
    spec = manifest["spec"]
    if manifest["kind"] == "TrainingRuntime":
        spec = spec["template"]["spec"]
    return {job["name"]: job["template"] for job in spec["replicatedJobs"]}
