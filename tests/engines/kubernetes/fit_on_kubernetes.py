"""Trains with muster.fit() on the Kubernetes of run.sh.

    fit_on_kubernetes.py FOLDER [arguments of unittest]

FOLDER is for the runs and the volumes. MUSTER_TEST_IMAGE is the image. MUSTER_MOTO_SERVER names the
program moto_server, an object store, if there is one.
"""

import contextlib
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import unittest
from unittest import mock

from test_models import AtEpoch, classifier, data, keras, np, tasks_of

import muster

FOLDER = sys.argv[1]
IMAGE = os.environ["MUSTER_TEST_IMAGE"]
NODE = os.environ["MUSTER_TEST_NODE"]
RESOURCES = {"cpu": "200m", "memory": "512Mi"}


def kubectl(*arguments, text=None):
    done = subprocess.run(["kubectl", *arguments], check=False, capture_output=True, text=True,
                          timeout=120, input=text)
    if done.returncode != 0:
        raise RuntimeError(f"kubectl {' '.join(arguments)}: {done.stderr}")
    return done.stdout


def on_kubernetes(workers, ps=0, **options):
    return muster.Kubernetes(workers, ps, **{
        "image": IMAGE, "storage": "1Gi", "worker_resources": RESOURCES,
        "server_resources": RESOURCES, "timeout_seconds": 120, **options})


def restart_api_server():
    """Kills the API server, and starts it again. All connections are lost."""
    for folder in os.listdir("/proc"):
        try:
            with open(f"/proc/{folder}/cmdline", "rb") as file:
                command = file.read().decode().split("\0")[:-1]
        except (OSError, UnicodeDecodeError):
            continue
        if command and command[0].endswith("kube-apiserver"):
            os.kill(int(folder), signal.SIGKILL)
            with open("/var/log/kube-apiserver.log", "ab") as log:
                subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
            return
    raise RuntimeError("no process of kube-apiserver")


class AtSecondEpoch(io.StringIO):
    """A stream that does something when the second epoch is shown."""

    def __init__(self, action):
        super().__init__()
        self._action = action

    def write(self, text):
        if "Epoch 2/" in text and "Epoch 2/" not in self.getvalue():
            self._action()
        return super().write(text)


class Watch(keras.callbacks.Callback):
    """Adds the norm of the weights to the logs."""

    def on_train_begin(self, logs=None):
        self.norms = []

    def on_epoch_end(self, epoch, logs=None):
        logs["norm"] = float(keras.ops.norm(self.model.layers[0].kernel))
        self.norms.append(logs["norm"])


class FitOnKubernetesTest(unittest.TestCase):
    def setUp(self):
        self.folder = os.path.join(FOLDER, self._testMethodName)
        self.namespace = self._testMethodName.replace("_", "-")[:60].strip("-")
        os.makedirs(self.folder)
        kubectl("create", "namespace", self.namespace)
        kubectl("config", "set-context", "--current", f"--namespace={self.namespace}")
        self.make_volume(0)

    def make_volume(self, number):
        """Makes a volume that the first claim gets."""
        path = os.path.join(self.folder, f"volume_{number}")
        os.makedirs(path)
        kubectl("apply", "--filename=-", text=json.dumps({
            "apiVersion": "v1", "kind": "PersistentVolume",
            "metadata": {"name": f"{self.namespace}-{number}"},
            "spec": {"accessModes": ["ReadWriteMany"], "capacity": {"storage": "1Gi"},
                     "local": {"path": path}, "nodeAffinity": {"required": {
                         "nodeSelectorTerms": [{"matchExpressions": [{
                             "key": "kubernetes.io/hostname", "operator": "In",
                             "values": [NODE]}]}]}}}}))

    def fit(self, model, name, epochs=3, **options):
        return muster.fit(model, *data(), batch_size=20, epochs=epochs, shuffle=False,
                          run_dir=os.path.join(self.folder, name), **options)

    def start_fit(self, script, run_dir):
        """Runs a program with the arguments `run_dir` and the image. Returns the process."""
        path = os.path.join(self.folder, "fit.py")
        with open(path, "w", encoding="utf-8") as file:
            file.write(script)
        return subprocess.Popen([sys.executable, "-W", "ignore", "-B", path, run_dir, IMAGE],
                                env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
                                stdout=subprocess.PIPE, text=True)

    def assert_same_weights(self, model, other):
        for weight, wanted in zip(model.get_weights(), other.get_weights()):
            np.testing.assert_allclose(weight, wanted, atol=1e-6)

    def assert_nothing_is_left(self):
        self.assertEqual(kubectl(
            "get", "jobs,pods,services,secrets,configmaps,networkpolicies,persistentvolumeclaims",
            "--selector=app.kubernetes.io/name=muster", "--output=name"), "")

    def test_synchronous_workers_get_the_weights_of_this_machine(self):
        local, model = classifier(), classifier()
        self.fit(local, "here", workers=2)
        checkpoints = os.path.join(self.folder, "checkpoints", "{epoch}.keras")
        log = os.path.join(self.folder, "log.csv")
        history = self.fit(model, "there", cluster=on_kubernetes(2), callbacks=[
            keras.callbacks.ModelCheckpoint(checkpoints), keras.callbacks.CSVLogger(log)])
        self.assert_same_weights(model, local)
        self.assertEqual(history.epoch, [0, 1, 2])
        self.assert_nothing_is_left()
        last = keras.models.load_model(checkpoints.replace("{epoch}", "3"))
        self.assert_same_weights(last, local)
        with open(log, encoding="utf-8") as file:
            self.assertEqual(len(file.readlines()), 4)

    def test_parameter_servers_train(self):
        path = os.path.join(self.folder, "data.csv")
        x, y = data()
        np.savetxt(path, np.column_stack([x, y]), delimiter=",", comments="",
                   header=",".join("abcdefgh") + ",kind", fmt=["%.6f"] * 8 + ["%d"])
        history = muster.fit(classifier(), path, "kind", batch_size=20, epochs=3,
                             cluster=on_kubernetes(1, 1))
        self.assertLess(history.history["loss"][-1], history.history["loss"][0])
        self.assert_nothing_is_left()

    def test_callbacks_see_and_change_the_weights(self):
        self.make_volume(1)
        for name, sizes in (("synchronous", {"workers": 2}), ("servers", {"workers": 1, "ps": 1})):
            with self.subTest(name):
                local, model = classifier(), classifier()
                for number, (trained, cluster) in enumerate((
                        (local, muster.Local(**sizes)), (model, on_kubernetes(**sizes)))):
                    watch, double = Watch(), AtEpoch(1, lambda trained=trained: [
                        variable.assign(variable * 2) for variable in trained.trainable_variables])
                    history = self.fit(trained, f"{name}_{number}", cluster=cluster, callbacks=[
                        watch, double, keras.callbacks.LearningRateScheduler(
                            lambda epoch, rate: rate / 2)])
                    self.assertEqual(history.history["norm"], watch.norms)
                    self.assertEqual(double.epochs, [0, 1, 2])
                self.assert_same_weights(model, local)

    def test_an_exception_of_a_callback_ends_the_job(self):
        def fail():
            raise KeyError("mine")

        with self.assertRaisesRegex(KeyError, "mine"):
            self.fit(classifier(), "failed", epochs=1000, cluster=on_kubernetes(2),
                     callbacks=[AtEpoch(1, fail)])
        self.assert_nothing_is_left()

    @unittest.skipUnless("MUSTER_MOTO_SERVER" in os.environ, "MUSTER_MOTO_SERVER names no program")
    def test_files_are_in_an_object_store(self):
        address = os.environ["MUSTER_TEST_NODE_ADDRESS"]
        url = f"http://{address}:5000"  # The network has no other user of the port.
        with subprocess.Popen([os.environ["MUSTER_MOTO_SERVER"], "-H", address, "-p", "5000"],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as store:
            self.addCleanup(store.kill)
            subprocess.run(["curl", "--silent", "--fail", "--retry", "60", "--retry-delay", "1",
                            "--retry-connrefused", "--request", "PUT", f"{url}/bucket"],
                           check=True, stdout=subprocess.DEVNULL)
            local, model = classifier(), classifier()
            self.fit(local, "here", workers=2)
            best = os.path.join(self.folder, "best.keras")
            with mock.patch.dict(os.environ, AWS_ACCESS_KEY_ID="id", AWS_ENDPOINT_URL=url,
                                 AWS_SECRET_ACCESS_KEY="key", AWS_REGION="eu-test-1"):
                history = self.fit(
                    model, "there", cluster=on_kubernetes(2, storage="s3://bucket/runs/1"),
                    callbacks=[keras.callbacks.ModelCheckpoint(best)])
            store.kill()
        self.assert_same_weights(model, local)
        self.assert_same_weights(keras.models.load_model(best), local)
        self.assertEqual(history.epoch, [0, 1, 2])
        self.assert_nothing_is_left()

    def test_batches_of_a_generator_are_drawn_before(self):
        x, y = data()

        def batches():
            while True:
                yield x[:20], y[:20]

        history = muster.fit(classifier(), batches(), steps_per_epoch=3, epochs=2,
                             cluster=on_kubernetes(1))
        self.assertEqual(history.epoch, [0, 1])

    def test_a_run_is_attached_after_its_process_was_killed(self):
        run_dir = os.path.join(self.folder, "attached")
        with self.start_fit(_LONG_FIT, run_dir) as process:
            for line in process.stdout:
                if "Epoch 2/" in line:
                    process.kill()
            self.assertEqual(process.wait(), -signal.SIGKILL)
        local, model = classifier(), classifier()
        self.fit(local, "attached_here", epochs=500, workers=2)
        history = muster.attach(model, run_dir)
        self.assert_same_weights(model, local)
        self.assertEqual(len(history.epoch), 500)
        self.assert_nothing_is_left()
        # The run has ended: its result comes from the folder.
        again = classifier()
        muster.attach(again, run_dir)
        self.assert_same_weights(again, local)

    def test_a_submission_is_continued(self):
        run_dir = os.path.join(self.folder, "attached")
        with self.start_fit(_LONG_FIT.replace("epochs=500", "epochs=3"), run_dir) as process:
            for line in process.stdout:
                if "files waits" in line:  # The first objects exist.
                    for path in tasks_of(run_dir):
                        os.kill(int(path.split("/")[2]), signal.SIGKILL)
        local, model = classifier(), classifier()
        self.fit(local, "here", workers=2)
        history = muster.attach(model, run_dir)
        self.assertEqual(history.epoch, [0, 1, 2])
        self.assert_same_weights(model, local)
        self.assert_nothing_is_left()

    def test_callbacks_go_on_after_their_process_was_killed(self):
        run_dir = os.path.join(self.folder, "attached")
        with self.start_fit(_KILLED_FIT, run_dir) as process:
            process.stdout.read()
            self.assertEqual(process.wait(), -signal.SIGKILL)
        local, model, watch = classifier(), classifier(), AtEpoch(None, None)
        self.fit(local, "attached_here", workers=2)
        # The first process has not answered the event of epoch 1.
        history = muster.attach(model, run_dir, callbacks=[watch])
        self.assert_same_weights(model, local)
        self.assertEqual(history.epoch, [0, 1, 2])
        self.assertEqual(watch.epochs, [1, 2])

    def test_a_result_that_cannot_be_written_stays_on_the_cluster(self):
        run_dir = os.path.join(self.folder, "run")
        obstacle = os.path.join(run_dir, "final_model.keras", "obstacle")
        local, model = classifier(), classifier()
        self.fit(local, "here", workers=2, verbose=0)
        with contextlib.redirect_stdout(AtSecondEpoch(lambda: os.makedirs(obstacle))), \
                self.assertRaisesRegex(muster.MusterError, "was not received: .*attach"):
            self.fit(model, "run", cluster=on_kubernetes(2))
        shutil.rmtree(os.path.dirname(obstacle))
        muster.attach(model, run_dir)
        self.assert_same_weights(model, local)
        self.assert_nothing_is_left()

    def test_a_lost_connection_is_made_again(self):
        """The API server is killed at the second epoch that is shown."""
        local, model = classifier(), classifier()
        self.fit(local, "here", epochs=100, workers=2, verbose=0)
        with contextlib.redirect_stdout(AtSecondEpoch(restart_api_server)) as output:
            self.fit(model, "there", epochs=100, cluster=on_kubernetes(2))
        self.assert_same_weights(model, local)
        for epoch in range(1, 101):
            self.assertEqual(output.getvalue().count(f"worker 0 | Epoch {epoch}/100\n"), 1, epoch)
        self.assert_nothing_is_left()

    def test_an_interrupt_ends_the_job(self):
        with self.start_fit(_INTERRUPTED_FIT, os.path.join(self.folder, "run")) as process:
            lines = []
            for line in process.stdout:
                lines.append(line)
                if "Epoch 3/" in line:
                    process.send_signal(signal.SIGINT)
            self.assertEqual(process.wait(), 0, "".join(lines))
        self.assertIn("the weights have changed: True\n", lines)
        self.assert_nothing_is_left()

    def test_a_failure_has_the_message_of_its_task(self):
        model = keras.Sequential([keras.Input((8,)), keras.layers.BatchNormalization(renorm=True),
                                  keras.layers.Dense(3)])
        model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
        with self.assertRaisesRegex(muster.MusterError, "worker 0: .*renorm"):
            # Without podFailurePolicy, Kubernetes 1.20 would start the task again.
            self.fit(model, "failed", cluster=on_kubernetes(2, launch_options=["--restart=0"]))
        self.assert_nothing_is_left()

    def test_an_image_that_cannot_be_pulled_is_named(self):
        with self.assertRaisesRegex(
                muster.MusterError,
                "the image 127.0.0.1:1/none:1 cannot be pulled .*refused.*pull_secret"):
            self.fit(classifier(), "none", cluster=on_kubernetes(1, image="127.0.0.1:1/none:1"))
        self.assert_nothing_is_left()

    def test_pods_without_room_have_the_reason_of_the_scheduler(self):
        with self.assertRaisesRegex(muster.MusterError, "Insufficient cpu.*No node has room"):
            self.fit(classifier(), "large", cluster=on_kubernetes(
                1, worker_resources={"cpu": "1000"}, timeout_seconds=8))
        self.assert_nothing_is_left()

    def test_a_claim_without_a_volume_is_named(self):
        with self.assertRaisesRegex(muster.MusterError, "PersistentVolumeClaim.*storage_class"):
            self.fit(classifier(), "claim", cluster=on_kubernetes(
                1, storage_class="none", timeout_seconds=8))
        self.assert_nothing_is_left()

    def test_a_quota_is_named(self):
        kubectl("create", "quota", "small", "--hard=pods=2")
        with self.assertRaisesRegex(muster.MusterError, "exceeded quota: small"):
            self.fit(classifier(), "quota", cluster=on_kubernetes(2, timeout_seconds=20))
        self.assert_nothing_is_left()

    def test_a_missing_permission_is_named(self):
        kubectl("create", "serviceaccount", "guest")
        token = kubectl("create", "--raw",
                        f"/api/v1/namespaces/{self.namespace}/serviceaccounts/guest/token",
                        "--filename=-", text=json.dumps({
                            "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
                            "spec": {"audiences": []}}))
        token = json.loads(token)["status"]["token"]
        kubectl("config", "set", "users.guest.token", token)
        kubectl("config", "set-context", "guest", "--cluster=test", "--user=guest",
                f"--namespace={self.namespace}")
        with self.assertRaisesRegex(muster.MusterError, "Forbidden.*Ask the administrator"):
            self.fit(classifier(), "guest", cluster=on_kubernetes(1, context="guest"))

    def test_a_cluster_that_cannot_be_reached_is_named(self):
        kubectl("config", "set-cluster", "nowhere", "--server=https://127.0.0.1:1")
        kubectl("config", "set-context", "nowhere", "--cluster=nowhere",
                "--user=administrator")
        with self.assertRaisesRegex(muster.MusterError, "has not answered for .*refused"):
            self.fit(classifier(), "nowhere", cluster=on_kubernetes(1, context="nowhere"))


_LONG_FIT = """
import sys
from test_models import classifier, data
import muster
run_dir, image = sys.argv[1:]
muster.fit(classifier(), *data(), batch_size=20, epochs=500, shuffle=False, run_dir=run_dir,
           cluster=muster.Kubernetes(2, image=image, storage="1Gi",
                                     worker_resources={"cpu": "200m", "memory": "512Mi"}))
"""

_KILLED_FIT = """
import os, signal, sys
from test_models import AtEpoch, classifier, data
import muster
run_dir, image = sys.argv[1:]
muster.fit(classifier(), *data(), batch_size=20, epochs=3, shuffle=False, run_dir=run_dir,
           callbacks=[AtEpoch(1, lambda: os.kill(os.getpid(), signal.SIGKILL))],
           cluster=muster.Kubernetes(2, image=image, storage="1Gi",
                                     worker_resources={"cpu": "200m", "memory": "512Mi"}))
"""

_INTERRUPTED_FIT = """
import sys
from test_models import classifier, data
import muster
run_dir, image = sys.argv[1:]
model = classifier()
before = model.get_weights()[0]
try:
    muster.fit(model, *data(), batch_size=20, epochs=1000000, run_dir=run_dir,
               cluster=muster.Kubernetes(2, image=image, storage="1Gi",
                                         worker_resources={"cpu": "200m", "memory": "512Mi"}))
except KeyboardInterrupt:
    print("the weights have changed:", (model.get_weights()[0] != before).any())
"""


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]], verbosity=2)
