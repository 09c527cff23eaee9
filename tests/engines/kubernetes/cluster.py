"""A Kubernetes cluster with one node that exists as long as this process: etcd, the API server,
controllers, scheduler, containerd, kubelet, and cluster DNS.

Must run in separate namespaces for mounts, network, processes and control groups, which run.sh
creates: all state is in file systems in memory, all ports belong to the namespace's network, and
the kernel ends all processes together with the first one.
"""

import json
import os
import subprocess
import time

import cluster_dns

DOMAIN = "cluster.local"
NODE = "node"
NODE_ADDRESS = "10.78.0.1"  # Address of the bridge to which all pods are connected.
POD_SUBNET = "10.78.0.0/16"
API_SERVER = "https://127.0.0.1:6443"
CONTAINERD_SOCKET = "/run/containerd/containerd.sock"
STATE = "/var/lib/muster-kubernetes"
TOKEN = "administrator"
READY_TIMEOUT_SECONDS = 120

# Settings that kubelet would otherwise write for the whole machine.
KERNEL_SETTINGS = {
    "vm/overcommit_memory": 1, "vm/panic_on_oom": 0, "kernel/panic": 10,
    "kernel/panic_on_oops": 1, "kernel/keys/root_maxkeys": 1000000,
    "kernel/keys/root_maxbytes": 25000000}

CONTAINERD_CONFIG = f"""
version = 2
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "localhost/pause:1"
  # Lower scores need a capability that not even root has everywhere.
  restrict_oom_score_adj = true
  disable_apparmor = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "BIN/usr/lib/cni"
    conf_dir = "{STATE}/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      BinaryName = "BIN/usr/sbin/runc"
"""

NETWORK = {
    "cniVersion": "0.4.0", "name": "pods", "plugins": [
        {"type": "bridge", "bridge": "pods", "isGateway": True, "hairpinMode": True,
         "ipam": {"type": "host-local", "ranges": [[{"subnet": POD_SUBNET}]],
                  "routes": [{"dst": "0.0.0.0/0"}]}}]}

KUBELET_CONFIG = {
    "apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
    "address": NODE_ADDRESS,
    "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
    "authorization": {"mode": "AlwaysAllow"},
    "cgroupDriver": "cgroupfs", "cgroupsPerQOS": False, "enforceNodeAllocatable": [],
    "failSwapOn": False, "evictionHard": {}, "oomScoreAdj": 0,
    "imageGCHighThresholdPercent": 100, "makeIPTablesUtilChains": False,
    "clusterDNS": [NODE_ADDRESS], "clusterDomain": DOMAIN, "resolvConf": "",
    # Interval in which changes of Secrets are passed to the pods.
    "syncFrequency": "2s", "nodeStatusUpdateFrequency": "2s"}

KUBECONFIG = {
    "apiVersion": "v1", "kind": "Config", "current-context": "test",
    "clusters": [{"name": "test", "cluster": {
        "server": API_SERVER, "insecure-skip-tls-verify": True}}],
    "users": [{"name": "administrator", "user": {"token": TOKEN}}],
    "contexts": [{"name": "test", "context": {
        "cluster": "test", "user": "administrator"}}]}


def write(path, content):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(content if isinstance(content, str) else json.dumps(content))
    return path


def run(*command):
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def wait_until(condition, what, timeout_seconds=READY_TIMEOUT_SECONDS):
    """Polls until `condition` returns a true value, and returns that value."""
    deadline = time.monotonic() + timeout_seconds
    while True:
        result = condition()
        if result:
            return result
        if time.monotonic() > deadline:
            raise TimeoutError(f"after {timeout_seconds} s still not: {what}")
        time.sleep(0.1)


def mount_control_groups():
    """Mounts the control groups so that the group of this process is their root."""
    with open("/proc/self/cgroup", encoding="utf-8") as file:
        hierarchies = [line.split(":")[1] for line in file]
    if hierarchies == [""]:  # Only cgroup v2 is mounted.
        run("mount", "-t", "cgroup2", "cgroup2", "/sys/fs/cgroup")
        # Only a group without processes can enable controllers for the groups below it.
        os.mkdir("/sys/fs/cgroup/cluster")
        write("/sys/fs/cgroup/cluster/cgroup.procs", "0")
        with open("/sys/fs/cgroup/cgroup.controllers", encoding="utf-8") as file:
            controllers = file.read().split()
        write("/sys/fs/cgroup/cgroup.subtree_control",
              " ".join("+" + name for name in controllers))
        return
    run("mount", "-t", "tmpfs", "tmpfs", "/sys/fs/cgroup")
    for controllers in filter(None, hierarchies):
        path = f"/sys/fs/cgroup/{controllers.removeprefix('name=')}"
        os.mkdir(path)
        options = f"none,{controllers}" if "=" in controllers else controllers
        run("mount", "-t", "cgroup", "-o", options, "cgroup", path)
        for controller in controllers.split(","):
            alias = f"/sys/fs/cgroup/{controller}"
            if "=" not in controllers and not os.path.exists(alias):
                os.symlink(path, alias)


def make_surroundings():
    """Gives this process separate file systems and a separate network."""
    run("mount", "-t", "sysfs", "sysfs", "/sys")
    mount_control_groups()
    for folder in ("/run", "/var/lib", "/var/log"):
        run("mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", folder)
    for name, value in KERNEL_SETTINGS.items():
        path = f"/proc/sys/{name}"
        run("mount", "--bind", write(f"{STATE}/kernel/{name}", f"{value}\n"), path)
    run("mount", "--make-rshared", "/")
    run("ip", "link", "set", "lo", "up")
    run("ip", "link", "add", "pods", "type", "bridge")
    run("ip", "address", "add", f"{NODE_ADDRESS}/16", "dev", "pods")
    run("ip", "link", "set", "pods", "up")


class Cluster:
    """Starts the cluster in the constructor, which returns when the node is ready."""

    def __init__(self, programs, logs):
        """`programs` is the folder of build_kubernetes.sh; `logs` is the folder for the daemons'
        logs."""
        self._bin = f"{programs}/bin"
        self._debian = f"{programs}/debian"
        self._logs = logs
        os.environ["PATH"] = ":".join([
            self._bin, f"{self._debian}/usr/bin", f"{self._debian}/usr/sbin",
            os.environ["PATH"]])
        os.environ["KUBECONFIG"] = f"{STATE}/kubeconfig"
        os.environ["HOME"] = f"{STATE}/home"  # kubectl keeps a cache there.
        os.environ["CONTAINERD_ADDRESS"] = CONTAINERD_SOCKET
        make_surroundings()
        self._write_configuration()
        self._start_control_plane()
        self._start_node()

    @staticmethod
    def _write_configuration():
        write(f"{STATE}/kubeconfig", KUBECONFIG)
        write(f"{STATE}/kubelet.json", KUBELET_CONFIG)
        write(f"{STATE}/cni/pods.conflist", NETWORK)
        write(f"{STATE}/tokens.csv", f'{TOKEN},administrator,1,"system:masters"\n')
        run("openssl", "genrsa", "-out", f"{STATE}/service-accounts.key", "2048")

    def _start(self, name, *arguments):
        with open(f"{self._logs}/{name}.log", "ab") as log:
            return subprocess.Popen([name, *arguments], stdin=subprocess.DEVNULL,
                                    stdout=log, stderr=log)

    def _start_control_plane(self):
        self._start("etcd", "--data-dir", f"{STATE}/etcd", "--unsafe-no-fsync")
        self._start(
            "kube-apiserver", "--etcd-servers=http://127.0.0.1:2379",
            "--bind-address=127.0.0.1", f"--advertise-address={NODE_ADDRESS}",
            f"--cert-dir={STATE}/certificates", "--allow-privileged=false",
            "--service-cluster-ip-range=10.96.0.0/16",
            f"--service-account-issuer={API_SERVER}",
            f"--service-account-key-file={STATE}/service-accounts.key",
            f"--service-account-signing-key-file={STATE}/service-accounts.key",
            f"--token-auth-file={STATE}/tokens.csv", "--authorization-mode=RBAC",
            "--kubelet-preferred-address-types=InternalIP")
        wait_until(lambda: self.kubectl("get", "--raw=/readyz", check=False) == "ok",
                   "the API server is ready")
        common = [f"--kubeconfig={STATE}/kubeconfig", "--leader-elect=false"]
        self._start(
            "kube-controller-manager", *common,
            f"--service-account-private-key-file={STATE}/service-accounts.key",
            "--node-monitor-period=1s", "--node-monitor-grace-period=16s")
        self._start("kube-scheduler", *common)
        dns = cluster_dns.ClusterDns(NODE_ADDRESS, DOMAIN)
        dns.follow(self._endpoint_events)

    @staticmethod
    def _endpoint_events():
        """Yields the events of Endpoints until the API server ends."""
        with subprocess.Popen(
                ["kubectl", "get", "endpoints", "--all-namespaces", "--watch",
                 "--output-watch-events", "--output=json"],
                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as watch:
            yield from watch.stdout

    def _start_node(self):
        write(f"{STATE}/containerd.toml", CONTAINERD_CONFIG.replace("BIN", self._debian))
        self._start("containerd", f"--config={STATE}/containerd.toml")
        wait_until(lambda: os.path.exists(CONTAINERD_SOCKET), "containerd listens")
        self._start(
            "kubelet", f"--config={STATE}/kubelet.json",
            f"--kubeconfig={STATE}/kubeconfig", f"--hostname-override={NODE}",
            f"--node-ip={NODE_ADDRESS}", "--container-runtime=remote",
            f"--container-runtime-endpoint=unix://{CONTAINERD_SOCKET}",
            f"--volume-plugin-dir={STATE}/volume-plugins")
        wait_until(lambda: self.kubectl("get", "node", NODE, check=False), "the node")
        self.kubectl("wait", "--for=condition=Ready", f"node/{NODE}",
                     f"--timeout={READY_TIMEOUT_SECONDS}s")

    @staticmethod
    def import_image(archive):
        run("ctr", "--namespace=k8s.io", "images", "import", archive)

    @staticmethod
    def kubectl(*arguments, text=None, check=True):
        """Returns the output of kubectl. Raises RuntimeError if kubectl fails and `check` is true.
        """
        done = subprocess.run(["kubectl", *arguments], input=text, text=True,
                              capture_output=True, check=False)
        if check and done.returncode != 0:
            raise RuntimeError(f"kubectl {' '.join(arguments)}: {done.stderr}")
        return done.stdout if done.returncode == 0 else ""
