"""Checks what `launch --kubernetes` prints: that the examples are up to date, that
Kubernetes' schemas accept it, and that its objects fit each other. Checks that the
tasks of the TFJob take what it gives them.

Needs PyYAML; the schemas are those of kubernetes-validate (PyPI), and
kustomization.yaml is built by kubectl, where they are installed.
"""

import json
import os
import shutil
import subprocess
import tempfile
import unittest

try:
    import yaml
except ImportError:
    yaml = None
try:
    import kubernetes_validate
except ImportError:
    kubernetes_validate = None

FOLDER = os.path.dirname(os.path.abspath(__file__))
LAUNCH = "deploy/launch/launch"
MUSTERCTL = "deploy/musterctl/musterctl"
JOB = "examples/digits/digits.job"
# The command of docs/kubernetes.md.
EXAMPLE = ["--kubernetes", "--image=registry.example.org/muster:1", "--workers=2",
           "--ps=1", "--tls=auto", "--data_claim=digits", f"--job={JOB}", "--set",
           "data_dir=/data"]
SYNCHRONOUS = ["--kubernetes", "--image=registry.example.org/muster:1",
               "--workers=3", "--ps=0", "--insecure", "--evaluator", f"--job={JOB}"]
# The example in each folder.
EXAMPLES = {
    "parameter_server": EXAMPLE,
    "synchronous": ["--kubernetes", "--image=registry.example.org/muster:1",
                    "--workers=3", "--ps=0", "--tls=auto", "--data_claim=digits",
                    f"--job={JOB}", "--set", "data_dir=/data"],
    "gpu": [*EXAMPLE, "--name=digits-gpu", "--task_gpus=1"]}
ODD = ["--kubernetes", "--image=a", "--workers=1", "--ps=0", "--insecure",
       "--name=odd", "--program=/usr/bin/train", "--", "--set",
       "text=\"quoted\": {a, b} # é\n\t\\"]


def launch(flags):
    return subprocess.run([LAUNCH, *flags], check=True, capture_output=True,
                          text=True).stdout


def manifests(flags):
    return list(yaml.safe_load_all(launch(flags)))


def pods(objects):
    return [o["spec"]["template"] for o in objects if o["kind"] == "Job"]


def named(objects, kind):
    found = [o for o in objects if o["kind"] == kind]
    assert len(found) == 1, (kind, found)
    return found[0]


class ExampleTest(unittest.TestCase):

    def test_the_examples_are_what_launch_prints(self):
        for folder, flags in EXAMPLES.items():
            path = os.path.join(FOLDER, folder, "digits.yaml")
            with open(path, encoding="utf-8") as file:
                self.assertEqual(launch(flags), file.read(), folder)


@unittest.skipUnless(yaml, "PyYAML is not installed")
class ManifestsTest(unittest.TestCase):

    def test_the_job_file_survives(self):
        with open(JOB, encoding="utf-8") as file:
            text = file.read()
        objects = manifests(EXAMPLE)
        self.assertEqual(named(objects, "ConfigMap")["data"], {"digits.job": text})

    def test_arguments_survive(self):
        container = pods(manifests(ODD))[0]["spec"]["containers"][0]
        self.assertEqual(container["command"], ["/usr/bin/train"])
        self.assertEqual(container["args"], ODD[-2:])

    def test_roles_have_the_tasks_asked_for(self):
        counts = {o["metadata"]["name"]: o["spec"]["completions"]
                  for o in manifests(EXAMPLE) if o["kind"] == "Job"}
        self.assertEqual(
            counts, {"digits-chief": 1, "digits-ps": 1, "digits-worker": 2})
        counts = {o["metadata"]["name"]: o["spec"]["completions"]
                  for o in manifests(SYNCHRONOUS) if o["kind"] == "Job"}
        self.assertEqual(counts, {"digits-worker": 3, "digits-evaluator": 1})

    def test_names_resolve_before_pods_are_ready(self):
        for flags in EXAMPLE, SYNCHRONOUS:
            objects = manifests(flags)
            service = named(objects, "Service")
            self.assertEqual(service["spec"]["clusterIP"], "None")
            self.assertTrue(service["spec"]["publishNotReadyAddresses"])
            selector = service["spec"]["selector"].items()
            for pod in pods(objects):
                self.assertEqual(pod["spec"]["subdomain"], service["metadata"]["name"])
                self.assertLessEqual(selector, pod["metadata"]["labels"].items())

    def test_only_pods_of_the_job_reach_each_other(self):
        policy = named(manifests(EXAMPLE), "NetworkPolicy")["spec"]
        self.assertEqual(policy["policyTypes"], ["Ingress"])
        self.assertEqual(policy["ingress"], [{"from": [
            {"podSelector": {"matchLabels": {"muster/job": "digits"}}}]}])

    def test_pods_have_no_privileges(self):
        for pod in pods(manifests(EXAMPLE)):
            spec = pod["spec"]
            self.assertTrue(spec["securityContext"]["runAsNonRoot"])
            self.assertFalse(spec["automountServiceAccountToken"])
            for container in spec["containers"]:
                context = container["securityContext"]
                self.assertTrue(context["readOnlyRootFilesystem"])
                self.assertFalse(context["allowPrivilegeEscalation"])
                self.assertEqual(context["capabilities"], {"drop": ["ALL"]})

    def test_volumes_and_ports_that_are_used_exist(self):
        for flags in EXAMPLE, SYNCHRONOUS, ODD:
            objects = manifests(flags)
            configs = {o["metadata"]["name"] for o in objects
                       if o["kind"] in ("ConfigMap", "PersistentVolumeClaim")}
            for pod in pods(objects):
                container = pod["spec"]["containers"][0]
                volumes = {v["name"]: v for v in pod["spec"]["volumes"]}
                mounts = {m["name"] for m in container["volumeMounts"]}
                self.assertEqual(mounts, volumes.keys())
                ports = {p["name"] for p in container["ports"]}
                for probe in "livenessProbe", "readinessProbe":
                    self.assertIn(container[probe]["httpGet"]["port"], ports)
                self.assertIn(volumes["run"]["persistentVolumeClaim"]["claimName"],
                              configs)

    def test_pods_get_the_keys_of_their_own_role_only(self):
        for pod in pods(manifests(EXAMPLE)):
            role = pod["metadata"]["labels"]["muster/role"]
            secrets = [v["secret"] for v in pod["spec"]["volumes"]
                       if v["name"] == "tls"]
            for item in secrets[0]["items"]:
                self.assertTrue(item["key"] == "ca.pem" or
                                item["key"].startswith(role + "-"), item)

    @unittest.skipUnless(kubernetes_validate, "kubernetes-validate is not installed")
    def test_the_schemas_of_kubernetes_accept_them(self):
        for flags in *EXAMPLES.values(), SYNCHRONOUS, ODD:
            for manifest in manifests(flags):
                kubernetes_validate.validate(manifest, "1.31", strict=True)
        wrong = manifests(EXAMPLE)[-1]
        wrong["spec"]["completions"] = "two"
        with self.assertRaises(kubernetes_validate.ValidationError):
            kubernetes_validate.validate(wrong, "1.31", strict=True)

    @unittest.skipUnless(shutil.which("kubectl"), "kubectl is not installed")
    def test_kustomize_builds_the_folder(self):
        for example in *EXAMPLES, "tfjob":
            with tempfile.TemporaryDirectory() as folder:
                # Copied, because kustomize follows no links out of its folder.
                for name in os.listdir(os.path.join(FOLDER, example)):
                    shutil.copy(os.path.join(FOLDER, example, name), folder)
                built = subprocess.run(["kubectl", "kustomize", folder], check=True,
                                       capture_output=True, text=True).stdout
            images = [line.split()[-1] for line in built.splitlines()
                      if " image:" in line]
            self.assertEqual(set(images), {"registry.example.org/muster:latest"})


@unittest.skipUnless(yaml, "PyYAML is not installed")
class TfJobTest(unittest.TestCase):

    def setUp(self):
        with open(os.path.join(FOLDER, "tfjob", "tfjob.yaml"), encoding="utf-8") as file:
            self.objects = list(yaml.safe_load_all(file))
        self.replicas = named(self.objects, "TFJob")["spec"]["tfReplicaSpecs"]

    def test_the_job_file_is_that_of_the_example(self):
        with open(JOB, encoding="utf-8") as file:
            self.assertEqual(named(self.objects, "ConfigMap")["data"],
                             {"digits.job": file.read()})

    def test_pods_are_those_of_launch(self):
        """But for what the operator names, and the readiness probe."""
        pods_of = {o["metadata"]["labels"]["muster/role"]: o["spec"]["template"]["spec"]
                   for o in manifests(EXAMPLE) if o["kind"] == "Job"}
        self.assertEqual({name.lower() for name in self.replicas}, pods_of.keys())
        for name, replica in self.replicas.items():
            expected = pods_of[name.lower()]
            pod = replica["template"]["spec"]
            for key in "securityContext", "volumes", "terminationGracePeriodSeconds":
                self.assertEqual(pod[key], expected[key])
            container, printed = pod["containers"][0], expected["containers"][0]
            self.assertEqual(container["name"], "tensorflow")
            for key in "args", "resources", "securityContext", "volumeMounts", \
                    "livenessProbe":
                self.assertEqual(container[key], printed[key])
            names = {v["name"] for v in printed["env"]}
            self.assertEqual({v["name"] for v in container["env"]},
                             names - {"MUSTER_CLUSTER_RESOLVER", "MUSTER_CLUSTER_TASKS",
                                      "MUSTER_PORT_BASE"})

    def test_tasks_take_what_they_are_given(self):
        cluster = {name.lower(): [f"digits-{name.lower()}-{i}.default.svc:2222"
                                  for i in range(replica["replicas"])]
                   for name, replica in self.replicas.items()}
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([MUSTERCTL, "gen-certs", "--job_id=digits", "--chiefs=1",
                            "--workers=2", "--ps=1", f"--out={folder}/tls"],
                           check=True, capture_output=True)
            with open(f"{folder}/token", "w", encoding="ascii") as file:
                file.write("0123456789abcdef" * 2)
            here = {"MUSTER_TLS_DIR": f"{folder}/tls", "MUSTER_RUN_DIR": f"{folder}/run",
                    "MUSTER_STATUS_TOKEN_FILE": f"{folder}/token",
                    "MUSTER_DATA_ROOT": folder}
            for name, replica in self.replicas.items():
                container = replica["template"]["spec"]["containers"][0]
                task = {"cluster": cluster, "environment": "cloud",
                        "task": {"type": name.lower(), "index": 0}}
                environment = {v["name"]: v["value"] for v in container["env"]} | here
                arguments = [a.replace("/etc/muster/job/digits.job", JOB)
                             for a in container["args"]]
                result = subprocess.run(
                    [LAUNCH, *arguments, "--check_config"], capture_output=True,
                    text=True, check=False,
                    env=os.environ | environment | {"TF_CONFIG": json.dumps(task)})
                self.assertEqual(result.returncode, 0, result.stderr)
                self.assertIn(f"{cluster[name.lower()][0]}  <- this task", result.stdout)


class RefusalTest(unittest.TestCase):

    def refusal(self, flags):
        result = subprocess.run([LAUNCH, *flags], capture_output=True, text=True,
                                check=False)
        self.assertEqual((result.returncode, result.stdout), (2, ""))
        return result.stderr

    def test_unprotected_tasks_must_be_asked_for(self):
        self.assertIn("--tls=auto", self.refusal(
            ["--kubernetes", "--image=a", f"--job={JOB}"]))
        self.assertIn("--tls=auto", self.refusal(["--slurm", f"--job={JOB}"]))

    def test_flags_are_checked(self):
        flags = ["--kubernetes", "--insecure", f"--job={JOB}"]
        self.assertIn("--image is missing", self.refusal(flags))
        self.assertIn("--name=A", self.refusal([*flags, "--image=a", "--name=A"]))
        self.assertIn("exclude each other", self.refusal([*flags, "--slurm"]))
        self.assertIn("need workers", self.refusal(
            [*flags, "--image=a", "--workers=0"]))
        self.assertIn("--task_gpus=-1", self.refusal(
            [*flags, "--image=a", "--task_gpus=-1"]))


if __name__ == "__main__":
    unittest.main()
