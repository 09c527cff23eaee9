"""A job of `launch --kubernetes` in a separate namespace, with its pods and their logs."""

import json
import os
import re
import shutil
import signal
import subprocess
import threading
import time

import yaml

import cluster
import job_per_task

IMAGE = "registry.example.org/muster:1"
LAUNCH = "bazel-bin/deploy/launch/launch"
MUSTERCTL = "bazel-bin/deploy/musterctl"
DATA = "examples/data/digits"
TIMEOUT_SECONDS = 120


class PodLog:
    """The lines that a pod writes. They remain available after its end."""

    def __init__(self, kubectl, pod):
        self.lines = []
        self._changed = threading.Condition()
        self._follower = None
        threading.Thread(target=self._follow, args=(kubectl, pod), daemon=True).start()

    def _follow(self, kubectl, pod):
        kubectl("wait", "--for=condition=Initialized", f"pod/{pod}")
        while not self.lines:  # Kubernetes refuses the request until the container has started.
            with subprocess.Popen(
                    ["kubectl", "logs", "--follow", pod], env=kubectl.environment,
                    stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as logs:
                for line in logs.stdout:
                    with self._changed:
                        self.lines.append(line.rstrip("\n"))
                        self._changed.notify_all()

    def await_line(self, pattern, begin=0, timeout_seconds=TIMEOUT_SECONDS):
        """Returns the first line, from number `begin` on, that matches the pattern."""
        def found():
            return next((line for line in self.lines[begin:] if re.search(pattern, line)),
                        None)

        with self._changed:
            line = self._changed.wait_for(found, timeout_seconds)
        if line is None:
            text = "\n".join(self.lines[-40:])
            raise TimeoutError(f"no line with {pattern!r} from {begin} on in\n{text}")
        return line


class Kubectl:
    """Runs kubectl in one namespace."""

    def __init__(self, namespace, folder):
        self.environment = {**os.environ, "KUBECONFIG": f"{folder}/kubeconfig"}
        shutil.copy(os.environ["KUBECONFIG"], self.environment["KUBECONFIG"])
        self("config", "set-context", "--current", f"--namespace={namespace}")

    def __call__(self, *arguments, text=None):
        done = subprocess.run(["kubectl", *arguments], env=self.environment, input=text,
                              capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"kubectl {' '.join(arguments)}: {done.stderr}")
        return done.stdout

    def objects(self, *arguments):
        return json.loads(self("get", *arguments, "--output=json"))["items"]


def container_of(pod):
    """Returns the id of a pod's container in containerd."""
    container = pod["status"]["containerStatuses"][0]["containerID"]
    return container.removeprefix("containerd://")


class JobUnderTest:
    """Creates the namespace, the volumes and the Secrets of a job, but does not start it.

    The run folder of the job is `run_dir` on this machine.
    """

    def __init__(self, name, folder, flags, data=DATA):
        self.folder = f"{folder}/{name}"
        self.run_dir = f"{self.folder}/run"
        self._namespace = name
        self._logs = {}
        os.makedirs(self.run_dir)
        shutil.copytree(data, f"{self.folder}/data")
        cluster.Cluster.kubectl("create", "namespace", name)
        self.kubectl = Kubectl(name, self.folder)
        self.text = subprocess.run(
            [LAUNCH, "--kubernetes", f"--image={IMAGE}", "--name=digits",
             "--task_cpus=400m", "--storage=1Gi", "--data_claim=data",
             "--set", "data_dir=/data", *flags],
            check=True, stdout=subprocess.PIPE, text=True).stdout
        self.manifests = list(yaml.safe_load_all(self.text))
        # Lets musterctl control the job.
        self.add_environment("chief", {"name": "MUSTER_CONTROL_PORT", "value": "9091"})
        self._make_volume("digits-run", self.run_dir, "ReadWriteMany")
        self._make_volume("data", f"{self.folder}/data", "ReadOnlyMany")
        self.kubectl("apply", "--filename=-", text=yaml.safe_dump({
            "apiVersion": "v1", "kind": "PersistentVolumeClaim",
            "metadata": {"name": "data"}, "spec": {
                "accessModes": ["ReadOnlyMany"],
                "resources": {"requests": {"storage": "1Gi"}}}}))
        self._make_secrets()
        # Pods are refused until the namespace has a service account.
        cluster.wait_until(lambda: self.kubectl.objects("serviceaccounts"),
                           "the namespace has a service account")

    def _make_volume(self, claim, path, mode):
        self.kubectl("apply", "--filename=-", text=yaml.safe_dump({
            "apiVersion": "v1", "kind": "PersistentVolume",
            "metadata": {"name": f"{self._namespace}-{claim}"}, "spec": {
                "accessModes": [mode], "capacity": {"storage": "1Gi"},
                "claimRef": {"namespace": self._namespace, "name": claim},
                "local": {"path": path}, "nodeAffinity": {"required": {
                    "nodeSelectorTerms": [{"matchExpressions": [{
                        "key": "kubernetes.io/hostname", "operator": "In",
                        "values": [cluster.NODE]}]}]}}}}))

    def _make_secrets(self):
        """Runs the commands at the beginning of the manifests."""
        commands = re.findall("^#   (.*)$", self.text.split("---")[0], re.MULTILINE)
        self._run_in_folder("\n".join(commands))

    def _run_in_folder(self, commands):
        path = f"{os.path.abspath(MUSTERCTL)}:{os.environ['PATH']}"
        subprocess.run(["bash", "-euo", "pipefail", "-c", commands], cwd=self.folder,
                       env={**self.kubectl.environment, "PATH": path}, check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)

    def start(self):
        """Applies the manifests, with a Job for each task."""
        self.kubectl("apply", "--filename=-", text=yaml.safe_dump_all(
            job_per_task.rewrite(self.manifests)))

    def pods(self, task):
        """Returns the pods of a task such as "worker-0", the newest last."""
        pods = [pod for pod in self.kubectl.objects("pods")
                if pod["spec"]["hostname"] == f"digits-{task}"]
        return sorted(pods, key=lambda pod: pod["metadata"]["creationTimestamp"])

    def pod(self, task, other_than=None):
        """Returns the newest pod of a task once it has an address."""
        def found():
            pods = [pod for pod in self.pods(task) if pod["status"].get("podIP")]
            if pods and pods[-1]["metadata"]["name"] != other_than:
                return pods[-1]
            return None

        return cluster.wait_until(found, f"{task} has a pod")

    def log(self, pod):
        name = pod["metadata"]["name"]
        if name not in self._logs:
            self._logs[name] = PodLog(self.kubectl, name)
        return self._logs[name]

    def delete(self, pod, *flags):
        """Tells Kubernetes to delete a pod. Does not wait for its end."""
        self.kubectl("delete", "pod", pod["metadata"]["name"], "--wait=false", *flags)

    def evict(self, pod):
        """Ends a pod as the maintenance of its node would. Returns its exit status.

        The status is the one that containerd reports: kubelet 1.20 sometimes deletes the pod before
        it has the status, and then writes 137 (ContainerStatusUnknown).
        """
        name = pod["metadata"]["name"]
        container = container_of(pod)
        with subprocess.Popen(
                ["timeout", str(TIMEOUT_SECONDS), "ctr", "--namespace=k8s.io", "events"],
                stdout=subprocess.PIPE, text=True) as events:
            self.kubectl(
                "create", f"--raw=/api/v1/namespaces/{self._namespace}/pods/{name}"
                "/eviction", "--filename=-", text=json.dumps({
                    "apiVersion": "policy/v1beta1", "kind": "Eviction",
                    "metadata": {"name": name, "namespace": self._namespace}}))
            for line in events.stdout:
                if "/tasks/exit" in line and container in line:
                    events.terminate()
                    return int(re.search('"exit_status":([0-9]+)', line).group(1))
        raise RuntimeError(f"{name} has not ended")

    def stop(self):
        """Tells the chief to end training."""
        files = "/etc/muster/tls/chief-0"
        self.kubectl(
            "exec", self.pods("chief-0")[-1]["metadata"]["name"], "--", "/usr/bin/musterctl",
            "stop", "--status=localhost:9090", "--tls_dir=", f"--tls_cert={files}.pem",
            f"--tls_key={files}.key", "--tls_ca=/etc/muster/tls/ca.pem")

    def certificate_of(self, pod):
        """Returns the certificate that a task presents to its clients."""
        shown = subprocess.run(
            ["openssl", "s_client", "-connect", f"{pod['status']['podIP']}:8888"],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False).stdout
        return re.search("-----BEGIN.*?-----END", shown, re.DOTALL).group()

    def replace_certificates(self):
        """Creates new certificates of the same authority, and replaces their Secret."""
        make_certificates = re.search("^#   (musterctl gen-certs .*)$", self.text,
                                      re.MULTILINE).group(1)
        self._run_in_folder(
            f"{make_certificates}\n"
            "kubectl create secret generic digits-tls --dry-run=client --output=yaml"
            " $(printf -- '--from-file=%s ' certs/*.pem certs/*-*.key) |"
            " kubectl apply --filename=-")

    def add_environment(self, role, *variables):
        """Adds variables to the environment of a role's container in the manifests."""
        for manifest in self.manifests:
            if manifest["metadata"]["name"] == f"digits-{role}":
                container = manifest["spec"]["template"]["spec"]["containers"][0]
                container["env"] += variables

    def await_end(self):
        """Waits until all tasks have completed. Returns the summary."""
        self.kubectl("wait", "--for=condition=complete", "jobs", "--all",
                     f"--timeout={TIMEOUT_SECONDS}s")
        with open(f"{self.run_dir}/summary.json", encoding="utf-8") as file:
            return json.load(file)

    def kill(self, pod):
        """Kills the process of a pod as the kernel would. The pod remains."""
        container = container_of(pod)
        tasks = subprocess.run(["ctr", "--namespace=k8s.io", "tasks", "list"], check=True,
                               stdout=subprocess.PIPE, text=True).stdout
        for line in tasks.splitlines():
            if line.split()[0] == container:
                os.kill(int(line.split()[1]), signal.SIGKILL)
                return
        raise RuntimeError(f"no process of {container} in\n{tasks}")

    def ends(self, task):
        """Returns how the containers of a task's pods have ended: exitCode, reason and others."""
        return [status["state"]["terminated"] for pod in self.pods(task)
                for status in pod["status"].get("containerStatuses", [])
                if "terminated" in status["state"]]

    def exit_statuses(self, task):
        return [end["exitCode"] for end in self.ends(task)]

    def remove(self, logs):
        """Deletes all pods and jobs immediately. Writes their logs to the folder `logs`."""
        texts = {name: "\n".join(log.lines) for name, log in self._logs.items()}
        for pod in self.kubectl.objects("pods"):
            name = pod["metadata"]["name"]
            try:
                texts[name] = self.kubectl("logs", name)
            except RuntimeError as error:  # The container has not started.
                texts.setdefault(name, str(error))
        texts["events"] = self.kubectl("get", "events")
        for name, text in texts.items():
            cluster.write(f"{logs}/{self._namespace}/{name}.log", text)
        self.kubectl("delete", "jobs,pods", "--all", "--grace-period=0", "--force",
                     "--wait=false")


class Stopwatch:

    def __init__(self):
        self._begin = time.monotonic()

    def __str__(self):
        return f"{time.monotonic() - self._begin:.1f} s"
