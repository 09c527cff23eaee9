"""The parts of muster.Kubernetes that need no cluster. tests/engines/kubernetes trains on one."""

import base64
import json
import os
import sys
import tempfile
import time
import unittest
from unittest import mock

import muster
from muster import kubernetes_cluster, output_files

# The programs that follow a job import their modules without the package.
sys.path.append(os.path.dirname(os.path.abspath(muster.__file__)))
import kubectl
import kubernetes_objects
import pod_events
import pod_logs
import pod_states


def pod(task="worker-0", state=None, conditions=(), phase="Pending"):
    statuses = [{"state": state}] if state else []
    return {"kind": "Pod", "metadata": {"name": f"digits-{task}-x", "labels": {}},
            "spec": {"hostname": f"digits-{task}", "containers": [{"image": "muster:1"}]},
            "status": {"phase": phase, "conditions": list(conditions),
                       "containerStatuses": statuses}}


def ended(task, status, time, reason="Error"):
    return pod(task, {"terminated": {"exitCode": status, "reason": reason, "finishedAt": time}},
               phase="Failed")


def job(role="worker"):
    return {
        "kind": "Job", "metadata": {"name": f"digits-{role}", "labels": {"muster/role": role}},
        "spec": {"completions": 2, "template": {"metadata": {"labels": {}}, "spec": {
            "subdomain": "digits", "restartPolicy": "Never", "schedulerName": "volcano",
            "securityContext": {"runAsUser": 65532},
            "containers": [{
                "name": "muster", "image": "muster:1", "args": ["--job=x"], "env": [{"name": "A"}],
                "livenessProbe": {}, "ports": [{}], "securityContext": {"readOnly": True},
                "resources": {"requests": {"cpu": "1", "memory": "2Gi"},
                              "limits": {"cpu": "1", "memory": "2Gi"}},
                "volumeMounts": [{"name": "run"}, {"name": "tls"}, {"name": "tmp"}]}],
            "volumes": [{"name": "run"}, {"name": "tls"}, {"name": "tmp"}]}}},
        "status": {}}


CLAIM = {"kind": "PersistentVolumeClaim", "metadata": {"name": "digits-run"},
         "spec": {"accessModes": ["ReadWriteMany"]}}
FIELDS = {"access_mode": "ReadWriteOnce", "storage_class": "fast", "pull_secret": "registry",
          "worker_resources": {"memory": "8Gi", "nvidia.com/gpu": 1}, "server_resources": {}}


class PodStatesTest(unittest.TestCase):
    def test_tasks_have_the_names_of_hosts(self):
        self.assertEqual(pod_states.task_of(pod("worker-11"), "digits"), "worker-11")
        self.assertIsNone(pod_states.task_of(pod("worker-11"), "other"))
        self.assertEqual([pod_states.shown(task) for task in ("chief-0", "ps-1", "worker-11")],
                         ["chief", "ps 1", "worker 11"])

    def test_a_pod_that_waits_has_the_reason(self):
        unscheduled = pod(conditions=[{"type": "PodScheduled", "status": "False",
                                       "message": "0/3 nodes are available: 3 Insufficient cpu."}])
        reason = pod_states.waiting_reason(unscheduled)
        self.assertEqual(reason, "0/3 nodes are available: 3 Insufficient cpu.")
        self.assertIn("No node has room", pod_states.pending_advice(reason))
        self.assertEqual(pod_states.blocking_reason(unscheduled), "")
        creating = pod(state={"waiting": {"reason": "ContainerCreating"}})
        self.assertEqual(pod_states.waiting_reason(creating), "")
        self.assertFalse(pod_states.has_started(creating))
        missing = pod(state={"waiting": {"reason": "ImagePullBackOff", "message": "no\n such"}})
        self.assertRegex(pod_states.blocking_reason(missing),
                         r"image muster:1 cannot be pulled \(ImagePullBackOff: no such\)")
        self.assertIn("storage_class", pod_states.pending_advice(
            "pod has unbound immediate PersistentVolumeClaims"))

    def test_the_cause_is_the_first_task_that_ended_by_itself(self):
        pods = [ended("worker-0", 138, "T10"), ended("worker-1", 1, "T12"),
                ended("worker-2", 2, "T11"), pod("ps-0", {"running": {}}, phase="Running")]
        self.assertIs(pod_states.cause(pods), pods[2])
        self.assertIs(pod_states.cause(pods[:1]), pods[0])
        self.assertIsNone(pod_states.cause(pods[3:]))
        self.assertEqual(pod_states.exit_of(ended("ps-0", 137, "T1", "OOMKilled")),
                         (137, "OOMKilled"))

    def test_a_pod_that_is_deleted_does_not_run(self):
        running = pod(state={"running": {}}, phase="Running")
        self.assertTrue(pod_states.is_running(running))
        running["metadata"]["deletionTimestamp"] = "T1"
        self.assertFalse(pod_states.is_running(running))


class KubectlTest(unittest.TestCase):
    def test_errors_say_what_to_do(self):
        for text, has_answer, wanted in (
                ("Warning: old\nUnable to connect to the server: dial tcp: i/o timeout", False,
                 "^Unable to connect"),
                ("The connection to the server 10.0.0.1:6443 was refused - did you", False,
                 "refused"),
                ("The connection to the server localhost:8080 was refused", True, "KUBECONFIG"),
                ('Error from server (Forbidden): pods is forbidden: User "x" cannot create', True,
                 "Ask the administrator"),
                ('Error from server (Forbidden): pods "x" is forbidden: exceeded quota: small',
                 True, "The quota of the namespace"),
                ("error: You must be logged in to the server (Unauthorized)", True, "Log in"),
                ('Error from server (NotFound): namespaces "x" not found', True,
                 "create namespace"),
                ("Error from server: etcdserver: leader changed", False, "leader"),
                ("", True, "without a message")):
            with self.subTest(text):
                error = kubectl.error_of(text)
                self.assertEqual(error.has_answer, has_answer)
                self.assertRegex(str(error), wanted)

    def test_objects_come_in_lists_or_one_by_one(self):
        one, other = {"kind": "Job", "x": 1}, {"kind": "Pod"}
        listed = json.dumps({"kind": "List", "items": [one, other]})
        self.assertEqual(kubectl.parse_objects(listed), [one, other])
        self.assertEqual(kubectl.parse_objects(f"{json.dumps(one)}\n{json.dumps(other)}\n"),
                         [one, other])

    def kubectl_that(self, action, folder):
        """Returns the patch of a kubectl that does something else when it is called first."""
        path = os.path.join(folder, "kubectl")
        with open(path, "w", encoding="utf-8") as file:
            file.write(f'#!/bin/sh\nif mkdir "$0.called" 2>/dev/null; then {action}; fi\n'
                       'echo "$@"\n')
        os.chmod(path, 0o755)
        return mock.patch.dict(os.environ, PATH=f"{folder}:{os.environ['PATH']}")

    def test_output_is_shown_once_after_a_lost_connection(self):
        with tempfile.TemporaryDirectory() as folder, self.kubectl_that(
                'echo "$@"; printf "not a whole line"; exit 0', folder):
            lines = []
            logs = pod_logs.PodLogs(kubectl.Kubectl(None, None, 1), folder, lines.append)
            logs.follow(pod(state={"running": {}}, phase="Running"), "worker-0")
            end = time.monotonic() + 60
            while not lines and time.monotonic() < end:  # The first call has begun.
                time.sleep(0.01)
            with open(os.path.join(folder, "kubectl"), "a", encoding="utf-8") as file:
                file.write("echo last\n")
            logs.end(60)
            self.assertEqual(lines, ["worker 0 | logs --follow digits-worker-0-x",
                                     "worker 0 | last"])

    def test_calls_without_an_answer_are_repeated(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "kubectl")
            with self.kubectl_that("echo EOF >&2; exit 1", folder):
                self.assertEqual(kubectl.Kubectl("c", "n", 60)("get", "pods"),
                                 "--context=c --namespace=n get pods\n")
                os.rmdir(path + ".called")
                with self.assertRaisesRegex(kubectl.KubectlError, "has not answered for 0 s: EOF"):
                    kubectl.Kubectl("c", "n", 0)("get", "pods")


class ObjectsTest(unittest.TestCase):
    def test_objects_get_what_launch_has_no_flags_for(self):
        claim, worker, ps = kubernetes_objects.adapted([CLAIM, job(), job("ps")], FIELDS)
        self.assertEqual(claim["spec"], {"accessModes": ["ReadWriteOnce"],
                                         "storageClassName": "fast"})
        spec = worker["spec"]["template"]["spec"]
        self.assertEqual(spec["imagePullSecrets"], [{"name": "registry"}])
        wanted = {"cpu": "1", "memory": "8Gi", "nvidia.com/gpu": "1"}
        self.assertEqual(spec["containers"][0]["resources"],
                         {"requests": wanted, "limits": wanted})
        self.assertEqual(ps["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"],
                         {"cpu": "1", "memory": "2Gi"})

    def test_the_pod_of_the_files_is_that_of_a_task_with_another_command(self):
        made = kubernetes_objects.files_pod([CLAIM, job()], "digits")
        self.assertEqual(made["metadata"]["name"], "digits-files")
        self.assertEqual(made["metadata"]["labels"]["muster/job"], "digits")
        container, = made["spec"]["containers"]
        self.assertEqual(container["command"] + container["args"], ["/usr/bin/musterctl", "sleep"])
        self.assertEqual(container["volumeMounts"], [{"name": "run"}, {"name": "tmp"}])
        self.assertEqual(made["spec"]["volumes"], [{"name": "run"}, {"name": "tmp"}])
        self.assertEqual(made["spec"]["securityContext"], {"runAsUser": 65532})
        for name in ("env", "ports", "livenessProbe"):
            self.assertNotIn(name, container)

    def test_the_longest_grace_period_counts(self):
        worker = job()
        worker["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = 60
        self.assertEqual(kubernetes_objects.grace_seconds([CLAIM, job("ps"), worker]), 60)

    def test_secrets_belong_to_the_job(self):
        made = kubernetes_objects.secret("digits-status", "digits", {"token": b"\xff"})
        self.assertEqual(base64.b64decode(made["data"]["token"]), b"\xff")
        self.assertEqual(made["metadata"]["labels"]["muster/job"], "digits")


class PodEventsTest(unittest.TestCase):
    def test_files_have_their_names_on_both_sides(self):
        for path, wanted in (("/pod/callbacks_0/weights.keras", "/here/callbacks_0/weights.keras"),
                             ("/other/weights.keras", "/other/weights.keras")):
            event = pod_events.with_moved_weights(
                json.dumps({"hook": "epoch_end", "weights": path}).encode(), "/pod", "/here")
            self.assertEqual(json.loads(event), {"hook": "epoch_end", "weights": wanted})
        self.assertEqual(pod_events.with_moved_weights(b'{"a": 1}', "/pod", "/here"), b'{"a": 1}')


class OutputFilesTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def write(self, *names):
        os.makedirs(os.path.dirname(self.path(*names)), exist_ok=True)
        with open(self.path(*names), "w", encoding="utf-8") as file:
            file.write(names[-1])

    def test_files_of_callbacks_come_back(self):
        placed = output_files.placed([
            {"model_checkpoint": {"filepath": self.path("best", "{epoch}", "m-{loss:.2f}.keras")}},
            {"model_checkpoint": {"filepath": "${run_dir}/last_epoch.keras"}},
            {"early_stopping": {"monitor": "loss"}},
            {"tensor_board": {"log_dir": self.path("tb")}}], self.folder)
        self.assertEqual(placed, [
            {"model_checkpoint": {"filepath": "${run_dir}/files/0/{epoch}/m-{loss:.2f}.keras"}},
            {"model_checkpoint": {"filepath": "${run_dir}/last_epoch.keras"}},
            {"early_stopping": {"monitor": "loss"}},
            {"tensor_board": {"log_dir": "${run_dir}/files/1"}}])
        self.write("run", "files", "0", "3", "m-0.25.keras")
        self.write("run", "files", "0", "other")  # No file that the callback writes.
        self.write("run", "files", "1", "train", "events")
        output_files.fetch(self.path("run"), self.folder)
        self.assertTrue(os.path.exists(self.path("best", "3", "m-0.25.keras")))
        self.assertFalse(os.path.exists(self.path("best", "other")))
        self.assertTrue(os.path.exists(self.path("tb", "train", "events")))

    def test_what_exists_here_only_cannot_be_continued(self):
        self.write("log.csv")
        self.write("backup", "x")
        for callback in ({"csv_logger": {"filename": self.path("log.csv"), "append": True}},
                         {"backup_and_restore": {"backup_dir": self.path("backup")}}):
            with self.subTest(callback), self.assertRaisesRegex(ValueError, "exists on this"):
                output_files.placed([callback], self.folder)
        output_files.placed([{"csv_logger": {"filename": self.path("log.csv"), "append": False}}],
                            self.folder)


class KubernetesTest(unittest.TestCase):
    def test_wrong_fields_are_named(self):
        with mock.patch.object(kubernetes_cluster.shutil, "which", return_value="kubectl"), \
                mock.patch.dict(os.environ, AWS_ACCESS_KEY_ID="id"):
            stored = muster.Kubernetes(2, image="i", storage="s3://bucket/run")
            stored.check(None)
            del os.environ["AWS_ACCESS_KEY_ID"]
            with self.assertRaisesRegex(ValueError, "no AWS_ACCESS_KEY_ID or GS_ACCESS_KEY_ID"):
                stored.check(None)
            for wrong, message in (
                    ({"image": ""}, "image=''; expected the image of Muster"),
                    ({"name": "Digits"}, "name='Digits'; expected at most 40 lower-case"),
                    ({"storage": "large"}, "storage='large'; expected a size"),
                    ({"storage": "s3://bucket"}, "or a URL such as"),
                    ({"access_mode": "X"}, "access_mode='X'; expected one of ReadWriteMany"),
                    ({"worker_resources": 3}, "worker_resources=3; expected a dict"),
                    ({"timeout_seconds": 0}, "timeout_seconds=0; expected a number above 0"),
                    ({"context": 1}, "context=1; expected a name"),
                    ({"launch_options": ["--ps=1"]}, "has --ps=1 in launch_options")):
                with self.subTest(message), self.assertRaisesRegex(ValueError, message):
                    muster.Kubernetes(**{"workers": 1, "image": "i", **wrong}).check(None)
        with mock.patch.object(kubernetes_cluster.shutil, "which", return_value=None), \
                self.assertRaisesRegex(ValueError, "needs kubectl, which is not in"):
            muster.Kubernetes(1, image="i").check(None)

    def test_the_files_of_a_job_are_in_the_volume_or_in_the_store(self):
        with tempfile.TemporaryDirectory() as folder:
            rows = os.path.join(folder, "rows.csv")
            with open(rows, "w", encoding="utf-8") as file:
                file.write("a,b\n")
            fields = {"model": {"keras": "${job_dir}/model.keras"}, "validation": None,
                      "train": {"csv": {"path": rows, "label": "b"}}, "callbacks": [
                          {"external": {"directory": "${job_dir}/callbacks_0"}}]}
            for number, (storage, place) in enumerate((
                    ("1Gi", "/run/muster/input"), ("s3://b/1", "s3://b/1/input"))):
                run = os.path.join(folder, str(number))
                placed = muster.Kubernetes(1, image="i", storage=storage).placed(fields, run)
                self.assertEqual(placed["model"]["keras"], f"{place}/model.keras")
                self.assertEqual(placed["train"]["csv"]["path"], f"{place}/data/train.csv")
                self.assertTrue(os.path.exists(os.path.join(run, "data", "train.csv")))
                self.assertEqual(placed["callbacks"][0]["external"]["directory"],
                                 f"{place[:-len('input')]}run/events/callbacks_0")


if __name__ == "__main__":
    unittest.main()
