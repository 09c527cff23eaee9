"""Trains with muster.fit() on a cluster of Ray with several raylets on this machine.

MUSTER_KERAS_PYTHON names a Python with Keras and Ray.
"""

import importlib.util
import os
import signal
import subprocess
import sys
import tempfile
import unittest

from test_models import AtEpoch, classifier, data, keras, np, tasks_of

import muster

if importlib.util.find_spec("ray") is None:
    print("No Ray: the test is skipped. Set MUSTER_KERAS_PYTHON to a Python with Ray.")
    raise SystemExit(0)

import ray.cluster_utils

WAIT_SECONDS_MAX = 120


class RayTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = ray.cluster_utils.Cluster(initialize_head=True,
                                                head_node_args={"num_cpus": 0})
        for _ in range(3):
            cls.cluster.add_node(num_cpus=1)

    @classmethod
    def tearDownClass(cls):
        cls.cluster.shutdown()

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def on_ray(self, workers, ps=0, **options):
        return muster.Ray(workers, ps, address=self.cluster.address, **options)

    def fit(self, model, name, epochs=3, **options):
        return muster.fit(model, *data(), batch_size=20, epochs=epochs, shuffle=False, verbose=0,
                          run_dir=os.path.join(self.folder, name), **options)

    def assert_same_weights(self, model, other):
        for weight, wanted in zip(model.get_weights(), other.get_weights()):
            np.testing.assert_allclose(weight, wanted, atol=1e-6)

    def test_weights_equal_those_of_this_machine(self):
        for name, sizes in (("synchronous", {"workers": 3}), ("servers", {"workers": 1, "ps": 1})):
            with self.subTest(name):
                local, model, watch = classifier(), classifier(), AtEpoch(None, None)
                self.fit(local, f"{name}_here", **sizes)
                history = self.fit(model, name, cluster=self.on_ray(**sizes), callbacks=[watch])
                self.assert_same_weights(model, local)
                self.assertEqual(history.epoch, [0, 1, 2])
                self.assertEqual(watch.epochs, [0, 1, 2])

    def test_a_killed_worker_is_started_again_with_all_others(self):
        run_dir = os.path.join(self.folder, "killed")
        backup = keras.callbacks.BackupAndRestore(os.path.join(self.folder, "backup"))

        def kill():
            workers = [path for path in tasks_of(run_dir) if os.path.basename(
                os.path.realpath(os.path.join(os.path.dirname(path), "exe"))) == "worker"]
            os.kill(int(workers[-1].split("/")[2]), signal.SIGKILL)

        local, model, watch = classifier(), classifier(), AtEpoch(1, kill)
        self.fit(local, "here", epochs=5, workers=2)
        history = self.fit(model, "killed", epochs=5, cluster=self.on_ray(2),
                           callbacks=[watch, backup])
        self.assert_same_weights(model, local)
        self.assertEqual(history.epoch, [0, 1, 2, 3, 4])
        self.assertEqual(tasks_of(run_dir), [])

    def test_an_interrupt_ends_the_tasks(self):
        model = classifier()
        before = model.get_weights()
        with self.assertRaises(KeyboardInterrupt):
            self.fit(model, "interrupted", epochs=100000, cluster=self.on_ray(2), callbacks=[
                AtEpoch(2, lambda: signal.raise_signal(signal.SIGINT))])
        self.assertEqual(tasks_of(self.folder), [])
        self.assertFalse(np.array_equal(model.get_weights()[0], before[0]))

    def test_failures_say_why(self):
        model = keras.Sequential([keras.Input((8,)), keras.layers.BatchNormalization(renorm=True),
                                  keras.layers.Dense(3)])
        model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
        with self.assertRaisesRegex(muster.MusterError, "worker 0: .*renorm"):
            self.fit(model, "failed", cluster=self.on_ray(2))
        with self.assertRaisesRegex(muster.MusterError, "address 127.0.0.1:1 cannot be reached"):
            self.fit(classifier(), "nowhere", cluster=muster.Ray(1, address="127.0.0.1:1"))
        for wrong, message in (({"workers": "2"}, "workers='2'; expected an integer"),
                               ({"ps": 1.5}, "ps=1.5; expected an integer"),
                               ({"placement": "X"}, "placement='X'; expected one of PACK"),
                               ({"restarts": -1}, "restarts=-1"),
                               ({"launch_options": "--insecure"}, "expected a list of options"),
                               ({"worker_options": 3}, "worker_options=3; expected a dict")):
            with self.subTest(message), self.assertRaisesRegex(ValueError, message):
                self.fit(classifier(), "wrong", cluster=muster.Ray(**{"workers": 1, **wrong}))
        with self.assertRaisesRegex(muster.MusterError, "Ray has not placed tasks"):
            self.fit(classifier(), "large", cluster=self.on_ray(
                1, worker_options={"num_cpus": 64}, timeout_seconds=1))

    def test_nodes_that_do_not_see_the_folder_get_a_copy(self):
        hidden = os.path.join(self.folder, "hidden")
        os.makedirs(hidden)
        script = os.path.join(self.folder, "fit.py")
        with open(script, "w", encoding="utf-8") as file:
            file.write(_HIDDEN_FIT)
        # Mounts of this process are not those of the raylets.
        done = subprocess.run(
            ["unshare", "--mount", "sh", "-c",
             'mount -t tmpfs tmpfs "$0" && exec "$1" -B "$2" "$0" "$3"', hidden,
             os.environ["MUSTER_KERAS_PYTHON"], script, self.cluster.address],
            capture_output=True, text=True, timeout=WAIT_SECONDS_MAX, check=False,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
        if done.stderr.startswith("unshare: "):
            self.skipTest(done.stderr)
        self.assertIn("epochs [0, 1]; refused: the node of the worker does not see", done.stdout,
                      done.stderr)


_HIDDEN_FIT = """
import sys
from test_models import binary, data, keras
import muster
folder, address = sys.argv[1:]
x, y = data()
model = binary()
before = model.get_weights()
cluster = muster.Ray(2, address=address)
history = muster.fit(model, x, y % 2, epochs=2, cluster=cluster, run_dir=folder + "/run")
assert (model.get_weights()[0] != before[0]).any()
try:
    muster.fit(model, x, y % 2, cluster=cluster, run_dir=folder + "/other",
               callbacks=[keras.callbacks.LambdaCallback()])
except muster.MusterError as error:
    print(f"epochs {history.epoch}; refused: {error}")
"""


if __name__ == "__main__":
    unittest.main()
