"""Checks the output of `launch --kubernetes`: the examples are up to date, Kubernetes'
schemas accept the output, and its objects refer to each other correctly. Checks that the
tasks of the TFJob accept its environment.

Needs PyYAML. If they are installed, validates against the schemas of kubernetes-validate
(PyPI), builds kustomization.yaml with kubectl, and renders the chart with helm.
"""

import json
import os
import re
import shutil
import subprocess
import tempfile
import unittest

import custom_resources

try:
    import yaml
except ImportError:
    yaml = None
try:
    import kubernetes_validate
except ImportError:
    kubernetes_validate = None

# Renders the chart; get_helm.sh downloads it.
HELM = os.environ.get("MUSTER_HELM") or shutil.which("helm")
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
# The flags of launch for the example in each folder.
EXAMPLES = {
    "parameter_server": EXAMPLE,
    "synchronous": ["--kubernetes", "--image=registry.example.org/muster:1",
                    "--workers=3", "--ps=0", "--tls=auto", "--data_claim=digits",
                    f"--job={JOB}", "--set", "data_dir=/data"],
    "gpu": [*EXAMPLE, "--name=digits-gpu", "--task_gpus=1"],
    "jobset": [*EXAMPLE, "--workload=jobset"],
    "trainjob": [*EXAMPLE, "--workload=trainjob"]}
WORKLOADS = "job", "jobset", "trainjob"
GANGS = "", "coscheduling", "volcano"
# The options that every workload supports.
CHOICES = ["--queue=users", "--priority_class=high", "--ttl=24h", "--pod_monitor",
           "--topology_spread=topology.kubernetes.io/zone", "--restart=7"]
ODD = ["--kubernetes", "--image=a", "--workers=1", "--ps=0", "--insecure",
       "--name=odd", "--program=/usr/bin/train", "--", "--set",
       "text=\"quoted\": {a, b} # é\n\t\\"]


def launch(flags):
    return subprocess.run([LAUNCH, *flags], check=True, capture_output=True,
                          text=True).stdout


def manifests(flags):
    return list(yaml.safe_load_all(launch(flags)))


def job_specs(objects):
    """Returns the spec of each role's Job, by role, for any kind of workload."""
    specs = {o["metadata"]["labels"]["muster/role"]: o["spec"] for o in objects
             if o["kind"] == "Job"}
    for manifest in objects:
        specs |= {name: template["spec"] for name, template
                  in custom_resources.job_templates(manifest).items()}
    return specs


def pods(objects):
    return [spec["template"] for spec in job_specs(objects).values()]


def environment_of(pod):
    return {v["name"]: v.get("value", v.get("valueFrom"))
            for v in pod["spec"]["containers"][0]["env"]}


def named(objects, kind):
    found = [o for o in objects if o["kind"] == kind]
    assert len(found) == 1, (kind, found)
    return found[0]


def by_kind(objects):
    return {(o["kind"], o["metadata"]["name"]): o for o in objects}


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

    def test_all_workloads_have_the_same_pods(self):
        expected = job_specs(manifests(EXAMPLE))
        for workload in "jobset", "trainjob":
            specs = job_specs(manifests([*EXAMPLE, f"--workload={workload}"]))
            self.assertEqual(specs.keys(), expected.keys())
            for role, spec in specs.items():
                text = json.dumps(spec)
                if workload == "trainjob" and role == "worker":
                    text = text.replace('"name": "node"', '"name": "muster"').replace(
                        'Name": "node"', 'Name": "muster"')
                self.assertEqual(json.loads(text), expected[role], (workload, role))

    def test_a_job_set_ends_with_the_task_that_leads(self):
        for flags, last in (EXAMPLE, ["chief"]), (SYNCHRONOUS, ["worker", "evaluator"]):
            spec = named(manifests([*flags, "--workload=jobset"]), "JobSet")["spec"]
            self.assertEqual(spec["successPolicy"]["targetReplicatedJobs"], last)
            for job in spec["replicatedJobs"]:
                # The pods' names require that one Job has all tasks of a role.
                self.assertEqual(job["replicas"], 1)

    def test_kubeflow_finds_its_trainer(self):
        objects = manifests([*EXAMPLE, "--workload=trainjob", "--priority_class=high"])
        runtime = named(objects, "TrainingRuntime")
        self.assertEqual(named(objects, "TrainJob")["spec"]["runtimeRef"], {
            "apiGroup": "trainer.kubeflow.org", "kind": runtime["kind"],
            "name": runtime["metadata"]["name"]})
        self.assertEqual(runtime["spec"]["mlPolicy"], {"numNodes": 2})
        step = "trainer.kubeflow.org/trainjob-ancestor-step"
        for role, template in custom_resources.job_templates(runtime).items():
            is_trainer = role == "worker"
            self.assertEqual(template["metadata"]["labels"].get(step),
                             "trainer" if is_trainer else None)
            pod = template["spec"]["template"]["spec"]
            self.assertEqual(pod["containers"][0]["name"],
                             "node" if is_trainer else "muster")
            # Kubeflow refuses a priority in other jobs, and applies the trainer's to all pods.
            self.assertEqual("priorityClassName" in pod, is_trainer)
            for rule in template["spec"]["podFailurePolicy"]["rules"]:
                if "onExitCodes" in rule:
                    self.assertEqual(rule["onExitCodes"]["containerName"],
                                     pod["containers"][0]["name"])

    def test_choices_are_where_they_belong(self):
        objects = manifests([*EXAMPLE, *CHOICES, "--gang=coscheduling"])
        self.assertEqual(named(objects, "PodGroup")["spec"], {"minMember": 4})
        jobs = [o for o in objects if o["kind"] == "Job"]
        for job in jobs:
            self.assertEqual(job["metadata"]["labels"]["kueue.x-k8s.io/queue-name"], "users")
            self.assertEqual(job["spec"]["ttlSecondsAfterFinished"], 86400)
            self.assertEqual(job["spec"]["backoffLimit"], 7)
            pod = job["spec"]["template"]
            self.assertEqual(pod["spec"]["priorityClassName"], "high")
            self.assertEqual(pod["spec"]["schedulerName"], "scheduler-plugins-scheduler")
            self.assertEqual(pod["metadata"]["labels"]["scheduling.x-k8s.io/pod-group"],
                             "digits")
            spread = pod["spec"]["topologySpreadConstraints"][0]
            self.assertEqual(spread["topologyKey"], "topology.kubernetes.io/zone")
            self.assertLessEqual(spread["labelSelector"]["matchLabels"].items(),
                                 pod["metadata"]["labels"].items())
        for kind in "jobset", "trainjob":
            objects = manifests([*EXAMPLE, *CHOICES, f"--workload={kind}",
                                 "--gang=volcano"])
            top = objects[-1]
            self.assertEqual(top["metadata"]["labels"]["kueue.x-k8s.io/queue-name"], "users")
            for spec in job_specs(objects).values():
                self.assertNotIn("ttlSecondsAfterFinished", spec)
                self.assertEqual(spec["template"]["spec"]["schedulerName"], "volcano")

    def test_prometheus_may_scrape_if_a_monitor_is_wanted(self):
        objects = manifests([*EXAMPLE, "--pod_monitor"])
        endpoint = named(objects, "PodMonitor")["spec"]["podMetricsEndpoints"][0]
        self.assertEqual(endpoint["authorization"]["credentials"],
                         {"name": "digits-status", "key": "token"})
        ports = named(objects, "NetworkPolicy")["spec"]["ingress"][1]["ports"]
        self.assertEqual([p["port"] for p in ports], [endpoint["port"]])

    def test_every_flag_of_tasks_reaches_them_or_is_refused(self):
        taken = {"job", "run_dir", "insecure", "port_base", "kubernetes_service",
                 "grace_period", "status_port"}
        # The flags that all executables accept, with their values.
        text = subprocess.run(["worker/worker", "--help"], check=True,
                              capture_output=True, text=True).stdout
        names = set(re.findall(r"^  --(?:\[no\])?([a-z0-9_]+)", text, re.MULTILINE))
        names -= {"help", "version", "set", "flagfile", "explain"}
        self.assertGreater(len(names), 40)
        for name in sorted(names - taken):
            for value in "3", "true", "false", "7s", "json", "error", "wait":
                result = subprocess.run(
                    [LAUNCH, *SYNCHRONOUS, f"--{name}={value}"], capture_output=True,
                    text=True, check=False)
                if "does not go with" in result.stderr:
                    break
                if result.returncode != 0:
                    continue  # The value does not have the flag's type.
                variables = environment_of(pods(list(yaml.safe_load_all(result.stdout)))[0])
                if f"MUSTER_{name.upper()}" in variables:
                    break
            else:
                self.fail(f"--{name} is neither refused nor in the environment")

    def test_the_flags_that_become_objects_are_honoured(self):
        objects = manifests([*EXAMPLE, "--run_dir=s3://results/a", "--log_megabytes=7",
                             "--grace_period=2m", "--status_port=9999",
                             "--port_base=7777", "--kubernetes_service=peers"])
        self.assertNotIn("PersistentVolumeClaim", [o["kind"] for o in objects])
        self.assertEqual(named(objects, "Service")["metadata"]["name"], "peers")
        for pod in pods(objects):
            variables = environment_of(pod)
            for name, value in {"RUN_DIR": "s3://results/a", "LOG_MEGABYTES": "7",
                                "STATUS_PORT": "9999", "PORT_BASE": "7777"}.items():
                self.assertEqual(variables[f"MUSTER_{name}"], value)
            self.assertEqual(pod["spec"]["subdomain"], "peers")
            self.assertEqual(pod["spec"]["terminationGracePeriodSeconds"], 130)
            self.assertEqual([p["containerPort"] for p
                              in pod["spec"]["containers"][0]["ports"]], [7777, 9999])

    def test_pods_get_the_keys_of_their_own_role_only(self):
        for pod in pods(manifests(EXAMPLE)):
            role = pod["metadata"]["labels"]["muster/role"]
            secrets = [v["secret"] for v in pod["spec"]["volumes"]
                       if v["name"] == "tls"]
            for item in secrets[0]["items"]:
                self.assertTrue(item["key"] == "ca.pem" or
                                item["key"].startswith(role + "-"), item)

    def test_the_schemas_of_custom_resources_accept_them(self):
        kinds = set()
        for flags in EXAMPLE, SYNCHRONOUS, ODD:
            for workload in WORKLOADS:
                for gang in "coscheduling", "volcano":
                    chosen = [f"--workload={workload}", f"--gang={gang}", *CHOICES]
                    for manifest in manifests([flags[0], *chosen, *flags[1:]]):
                        if custom_resources.is_custom(manifest):
                            custom_resources.check(manifest)
                            kinds.add((manifest["apiVersion"], manifest["kind"]))
        self.assertEqual(kinds, custom_resources.SPECS.keys())
        wrong = named(manifests([*EXAMPLE, "--workload=jobset"]), "JobSet")
        wrong["spec"]["replicas"] = 1
        wrong["spec"]["failurePolicy"]["maxRestarts"] = "many"
        del wrong["spec"]["replicatedJobs"][0]["name"]
        with self.assertRaisesRegex(ValueError, "JobSet.spec.replicas: no such field"):
            custom_resources.check(wrong)
        with self.assertRaisesRegex(ValueError, "maxRestarts: expected int, got 'many'"):
            custom_resources.check(wrong)
        with self.assertRaisesRegex(ValueError, r"replicatedJobs\[0\].name: missing"):
            custom_resources.check(wrong)

    @unittest.skipUnless(kubernetes_validate, "kubernetes-validate is not installed")
    def test_the_schemas_of_kubernetes_accept_them(self):
        for flags in *EXAMPLES.values(), SYNCHRONOUS, ODD, [*EXAMPLE, *CHOICES]:
            objects = manifests(flags)
            for manifest in objects:
                if not custom_resources.is_custom(manifest):
                    kubernetes_validate.validate(manifest, "1.31", strict=True)
            for role, spec in job_specs(objects).items():
                kubernetes_validate.validate(
                    {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": role},
                     "spec": spec}, "1.31", strict=True)
        wrong = manifests(EXAMPLE)[-1]
        wrong["spec"]["completions"] = "two"
        with self.assertRaises(kubernetes_validate.ValidationError):
            kubernetes_validate.validate(wrong, "1.31", strict=True)

    @unittest.skipUnless(shutil.which("kubectl"), "kubectl is not installed")
    def test_kustomize_builds_the_folder(self):
        for example in *EXAMPLES, "tfjob":
            with tempfile.TemporaryDirectory() as folder:
                # kustomize does not follow links out of its folder, so copy the files.
                for name in os.listdir(os.path.join(FOLDER, example)):
                    shutil.copy(os.path.join(FOLDER, example, name), folder)
                built = subprocess.run(["kubectl", "kustomize", folder], check=True,
                                       capture_output=True, text=True).stdout
            images = [line.split()[-1] for line in built.splitlines()
                      if " image:" in line]
            self.assertEqual(set(images), {"registry.example.org/muster:latest"})


# The flags of launch, and the values of the chart that replace them.
CHART_EXAMPLES = {
    "parameter servers": (EXAMPLE, {"dataClaim": "digits", "settings.data_dir": "/data"}),
    "in sync": (SYNCHRONOUS, {"tasks.chief": 0, "tasks.ps": 0, "tasks.worker": 3,
                              "tasks.evaluator": 1, "tls": "false"}),
    "gpus": ([*EXAMPLE, "--task_gpus=2"],
             {"dataClaim": "digits", "settings.data_dir": "/data", "workerGpus": 2}),
    "choices": ([*EXAMPLE, *CHOICES],
                {"dataClaim": "digits", "settings.data_dir": "/data", "queue": "users",
                 "priorityClass": "high", "ttlSeconds": 86400, "podMonitor": "true",
                 "topologySpread": "topology.kubernetes.io/zone", "restartCountMax": 7}),
    "folder": ([*EXAMPLE, "--run_dir=/results/a"],
               {"dataClaim": "digits", "settings.data_dir": "/data",
                "runDir": "/results/a"}),
    "below": ([*EXAMPLE, "--run_dir=runs/7", "--threads=3", "--grace_period=2m"],
              {"dataClaim": "digits", "settings.data_dir": "/data", "runDir": "runs/7",
               "environment.MUSTER_THREADS": "3", "graceSeconds": 120,
               "environment.MUSTER_GRACE_PERIOD": "2m"}),
    "store": ([*EXAMPLE, "--run_dir=s3://results/a", "--kubernetes_service=peers",
               "--port_base=7777", "--status_port=9999"],
              {"dataClaim": "digits", "settings.data_dir": "/data",
               "runDir": "s3://results/a", "service": "peers", "portBase": 7777,
               "statusPort": 9999, "environment.MUSTER_STATUS_PORT": "9999"}),
}


@unittest.skipUnless(yaml, "PyYAML is not installed")
@unittest.skipUnless(HELM, "helm is not installed")
class ChartTest(unittest.TestCase):
    CHART = os.path.join(FOLDER, "chart")
    IMAGE = "image=registry.example.org/muster:1"

    def test_the_chart_has_what_launch_prints(self):
        for name, (flags, values) in CHART_EXAMPLES.items():
            for workload in WORKLOADS:
                for gang in GANGS if name == "choices" else [""]:
                    expected = manifests(
                        [flags[0], f"--workload={workload}", f"--gang={gang}", *flags[1:]])
                    with open(JOB, encoding="utf-8") as file:
                        text = file.read()
                    result = subprocess.run(
                        [HELM, "template", "digits", self.CHART, f"--set={self.IMAGE}",
                         "--set=job.file=digits.job", f"--set-file=job.text={JOB}",
                         f"--set=workload={workload},gang={gang}",
                         *[f"--set{'-string' if '.MUSTER_' in key else ''}={key}={value}"
                           for key, value in values.items()]],
                        capture_output=True, text=True, check=False)
                    self.assertEqual(result.returncode, 0, result.stderr)
                    objects = [o for o in yaml.safe_load_all(result.stdout) if o]
                    self.assertEqual(by_kind(objects), by_kind(expected),
                                     (name, workload, gang))
                    self.assertEqual(named(objects, "ConfigMap")["data"],
                                     {"digits.job": text})

    def test_helm_lints_it(self):
        result = subprocess.run(
            [HELM, "lint", "--strict", self.CHART, f"--set={self.IMAGE}",
             "--set=job.file=digits.job", f"--set-file=job.text={JOB}"],
            capture_output=True, text=True, check=False)
        self.assertEqual(result.returncode, 0, result.stdout)

    def test_values_that_are_missing_or_wrong_are_named(self):
        for values, error in (["job.text=a,job.file=b", "image is missing"],
                              ["image=a,job.text=a", "job.file is missing"],
                              ["image=a,job.file=a", "job.text is missing"],
                              ["image=a,job.file=a,job.text=a,workload=pod",
                               'workload is "pod"; expected job'],
                              ["image=a,job.file=a,job.text=a,gang=kueue",
                               'gang is "kueue"; expected coscheduling']):
            result = subprocess.run([HELM, "template", self.CHART, f"--set={values}"],
                                    capture_output=True, text=True, check=False)
            self.assertIn(error, result.stderr)
            self.assertNotEqual(result.returncode, 0)


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
        """Except the names that the operator sets, and the readiness probe."""
        pods_of = {role: spec["template"]["spec"]
                   for role, spec in job_specs(manifests(EXAMPLE)).items()}
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
            given = {"MUSTER_CLUSTER_RESOLVER", "MUSTER_CLUSTER_TASKS", "MUSTER_PORT_BASE"}
            text = json.dumps([v for v in printed["env"] if v["name"] not in given])
            self.assertEqual(container["env"], json.loads(
                text.replace('Name": "muster"', 'Name": "tensorflow"')))

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
                environment = {v["name"]: v["value"] for v in container["env"]
                               if "value" in v} | here
                arguments = [a.replace("/etc/muster/job/digits.job", JOB)
                             for a in container["args"]]
                result = subprocess.run(
                    [LAUNCH, *arguments, "--check_config", "--nocheck_data"],
                    capture_output=True, text=True, check=False,
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
        self.assertIn("--workload=pod: expected", self.refusal(
            [*flags, "--image=a", "--workload=pod"]))

    def test_what_has_no_meaning_is_refused(self):
        slurm = ["--slurm", "--insecure", f"--job={JOB}"]
        self.assertIn("--run_dir=s3://b/a: expected a folder", self.refusal(
            [*slurm, "--run_dir=s3://b/a"]))
        self.assertIn("--status_port=9090: tasks of one node", self.refusal(
            [*slurm, "--status_port=9090"]))
        self.assertIn("--queue does not go with --slurm: it is for --kubernetes",
                      self.refusal([*slurm, "--queue=a"]))
        self.assertIn("--tf_config does not go with --slurm and --kubernetes",
                      self.refusal([*slurm, "--tf_config={}"]))
        self.assertIn("--queue is for --slurm and --kubernetes", self.refusal(
            [f"--job={JOB}", "--queue=a"]))


if __name__ == "__main__":
    unittest.main()
