"""Disturbs jobs of `launch --kubernetes` on a real Kubernetes and checks the result.

    scenarios.py PROGRAMS WORK [arguments of unittest]

run.sh starts it as the first process of separate namespaces.
"""

import os
import shutil
import subprocess
import sys
import unittest

import cluster
import job_per_task
from job_under_test import IMAGE, JobUnderTest, Stopwatch

PARAMETER_SERVERS = ["--workers=2", "--ps=1", "--tls=auto", "--task_memory=512Mi",
                     "--job=tests/engines/kubernetes/digits_in_pods.job"]
# Such a job ends when the test stops it.
LONG = ["--set", "epochs=1000000"]
SYNCHRONOUS = ["--workers=3", "--ps=0", "--tls=auto", "--task_memory=512Mi",
               "--job=tests/engines/synchronous.job"]

logs = ""


class ScenarioTest(unittest.TestCase):

    def new_job(self, flags):
        """Returns a job in a namespace with its name. The job ends with the test."""
        kind = type(self).__name__.removesuffix("Test").lower()
        name = self._testMethodName.removeprefix("test_").replace("_", "-")
        name = f"{kind}-{name}"
        job = JobUnderTest(name, f"{cluster.STATE}/jobs", flags)
        self.addCleanup(job.remove, logs)
        return job

    def note(self, text):
        print(f"  {text}", flush=True)


class ParameterServersTest(ScenarioTest):

    def start(self):
        """Starts a job that trains until it is stopped, and waits until it trains."""
        self.job = self.new_job(PARAMETER_SERVERS + LONG)
        self.job.start()
        self.chief = self.job.log(self.job.pod("chief-0"))
        self.chief.await_line("Epoch 3/")

    def stop(self):
        """Stops training, and checks the end of all tasks."""
        self.job.stop()
        summary = self.job.await_end()
        self.assertGreater(summary["final"]["test_sparse_categorical_accuracy"], 0.9)

    def test_training_ends(self):
        job = self.new_job(PARAMETER_SERVERS)
        watch = Stopwatch()
        job.start()
        job.log(job.pod("chief-0")).await_line("Epoch 1/")
        self.note(f"from `kubectl apply` to the first epoch: {watch}")
        summary = job.await_end()
        self.note(f"to the end of all pods: {watch}")
        self.assertGreater(summary["final"]["test_sparse_categorical_accuracy"], 0.9)
        for task in "chief-0", "ps-0", "worker-0", "worker-1":
            self.assertEqual(job.exit_statuses(task), [0], task)

    def test_a_deleted_worker_is_used_at_its_new_address(self):
        self.start()
        old = self.job.pod("worker-0")
        seen = len(self.chief.lines)
        watch = Stopwatch()
        self.job.delete(old, "--grace-period=0", "--force")
        new = self.job.pod("worker-0", other_than=old["metadata"]["name"])
        self.note(f"a new pod has an address after {watch}")
        self.chief.await_line("worker 0.* lost", seen)
        self.chief.await_line("worker 0.* has reconnected", seen)
        self.note(f"the worker is used again after {watch}")
        self.assertNotEqual(old["status"]["podIP"], new["status"]["podIP"])
        self.stop()

    def test_a_killed_server_is_restored(self):
        self.start()
        cluster.wait_until(lambda: os.path.exists(f"{self.job.run_dir}/recovery/checkpoint"),
                           "there is a checkpoint of the servers")
        seen = len(self.chief.lines)
        watch = Stopwatch()
        self.job.kill(self.job.pod("ps-0"))
        self.chief.await_line("training was rolled back to", seen)
        self.note(f"rolled back after {watch}")
        self.assertEqual(self.job.exit_statuses("ps-0"), [137])
        self.stop()

    def test_an_evicted_chief_resumes(self):
        self.start()
        old = self.job.pod("chief-0")
        watch = Stopwatch()
        self.assertEqual(self.job.evict(old), 143)
        self.note(f"the chief has ended after {watch}")
        self.assertIn("Saved", "\n".join(self.chief.lines))
        new = self.job.pod("chief-0", other_than=old["metadata"]["name"])
        self.chief = self.job.log(new)
        self.chief.await_line("Resuming in epoch")
        self.note(f"training continues after {watch}")
        self.stop()
        for task in "ps-0", "worker-0", "worker-1":
            self.assertEqual(self.job.exit_statuses(task), [138, 0], task)

    def test_certificates_are_replaced_in_training(self):
        self.start()
        server = self.job.pod("ps-0")
        before = self.job.certificate_of(server)
        watch = Stopwatch()
        self.job.replace_certificates()
        cluster.wait_until(lambda: self.job.certificate_of(server) != before,
                           "the server shows its new certificate")
        self.note(f"the server shows its new certificate after {watch}")
        seen = len(self.chief.lines)
        self.job.delete(self.job.pod("worker-0"), "--grace-period=0", "--force")
        self.chief.await_line("worker 0.* has reconnected", seen)
        self.chief.await_line("Epoch ", len(self.chief.lines))
        self.stop()

    def test_a_worker_out_of_memory_is_replaced(self):
        self.job = self.new_job(PARAMETER_SERVERS + LONG)
        self.job.add_environment("worker", {"name": "MUSTER_FAULT", "valueFrom": {
            "configMapKeyRef": {"name": "fault", "key": "FAULT", "optional": True}}})
        self.job.kubectl("create", "configmap", "fault",
                         "--from-literal=FAULT=worker.before_step@step=60:allocate=2048")
        self.job.start()
        self.chief = self.job.log(self.job.pod("chief-0"))
        self.job.pod("worker-1")
        self.chief.await_line("Epoch 1/")
        self.job.kubectl("delete", "configmap", "fault")
        self.chief.await_line("is lost")
        self.chief.await_line("worker 0.* has reconnected")
        self.chief.await_line("worker 1.* has reconnected")
        self.assertEqual(self.job.ends("worker-0")[0]["reason"], "OOMKilled")
        self.stop()


class SynchronousTest(ScenarioTest):

    def test_training_ends(self):
        job = self.new_job(SYNCHRONOUS)
        watch = Stopwatch()
        job.start()
        summary = job.await_end()
        self.note(f"from `kubectl apply` to the end of all pods: {watch}")
        self.assertGreater(summary["final"]["sparse_categorical_accuracy"], 0.8)

    def restart(self, disturb, status):
        """Ends worker 1 with `disturb`. All others must end with `status`, and training must
        resume."""
        job = self.new_job(SYNCHRONOUS + ["--set", "epochs=200"])
        job.start()
        old = job.pod("worker-0")
        job.log(old).await_line("Epoch 3/")
        watch = Stopwatch()
        disturb(job, job.pod("worker-1"))
        new = job.pod("worker-0", other_than=old["metadata"]["name"])
        job.log(new).await_line("Resuming in epoch")
        self.note(f"training continues after {watch}")
        job.await_end()
        for task in "worker-0", "worker-2":
            self.assertEqual(job.exit_statuses(task), [status, 0], task)

    def test_a_deleted_worker_saves_and_restarts_the_group(self):
        self.restart(lambda job, pod: job.delete(pod), 143)

    def test_a_killed_worker_restarts_the_group(self):
        self.restart(lambda job, pod: job.kill(pod), 138)


class FitTest(unittest.TestCase):

    @unittest.skipUnless("MUSTER_KERAS_PYTHON" in os.environ,
                         "MUSTER_KERAS_PYTHON names no Python with Keras")
    def test_muster_fit(self):
        """Runs the tests of fit_on_kubernetes.py, or those that MUSTER_FIT_TESTS names."""
        folder = f"{cluster.STATE}/fits"
        cluster.write(f"{folder}/bin/kubectl", "#!/bin/sh\nexec /usr/bin/python3 -B "
                      f"'{os.path.abspath(job_per_task.__file__)}' {shutil.which('kubectl')} "
                      '"$@"\n')
        os.chmod(f"{folder}/bin/kubectl", 0o755)
        environment = {
            **os.environ, "MUSTER_TEST_IMAGE": IMAGE, "MUSTER_TEST_NODE": cluster.NODE,
            "MUSTER_TEST_NODE_ADDRESS": cluster.NODE_ADDRESS,
            "MUSTER_BIN": os.path.abspath("bazel-bin"), "KERAS_BACKEND": "jax",
            "PYTHONPATH": os.path.abspath("deploy/python"),
            "PATH": f"{folder}/bin:{os.environ['PATH']}"}
        test = os.path.join(os.path.dirname(os.path.abspath(__file__)), "fit_on_kubernetes.py")
        done = subprocess.run([os.environ["MUSTER_KERAS_PYTHON"], "-W", "ignore", "-B", test,
                               folder, *os.environ.get("MUSTER_FIT_TESTS", "").split()],
                              env=environment, check=False)
        self.assertEqual(done.returncode, 0)


def main():
    programs, work, *arguments = sys.argv[1:]
    global logs
    logs = f"{work}/logs"
    watch = Stopwatch()
    node = cluster.Cluster(programs, logs)
    for image in "pause", "muster":
        node.import_image(f"{work}/image/{image}.tar")
    os.makedirs(f"{cluster.STATE}/jobs")
    print(f"Kubernetes is ready after {watch}", flush=True)
    program = unittest.main(argv=["scenarios.py", *arguments], verbosity=2, exit=False)
    failed = len(program.result.failures) + len(program.result.errors)
    print(f"{program.result.testsRun - failed} passed, {failed} failed")
    sys.exit(0 if failed == 0 and program.result.testsRun else 1)


if __name__ == "__main__":
    main()
