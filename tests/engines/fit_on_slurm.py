"""Trains with muster.fit() on the Slurm of slurm_test. The argument is a folder for the runs."""

import os
import signal
import subprocess
import sys
import unittest

from test_models import AtEpoch, classifier, data, keras, np

import muster

FOLDER = sys.argv[1]
OPTIONS = ["--nodes=2", "--cpus-per-task=1"]


def fit(model, name, epochs=3, **options):
    return muster.fit(model, *data(), batch_size=20, epochs=epochs, shuffle=False,
                      run_dir=os.path.join(FOLDER, name), **options)


def submitted_jobs():
    return subprocess.run(["squeue", "--noheader", "--format=%i %T"], check=True,
                          capture_output=True, text=True, timeout=120).stdout


class FitOnSlurmTest(unittest.TestCase):
    def assert_same_weights(self, model, other):
        for weight, wanted in zip(model.get_weights(), other.get_weights()):
            np.testing.assert_allclose(weight, wanted, atol=1e-6)

    def test_weights_equal_those_of_this_machine(self):
        for name, sizes in (("synchronous", {"workers": 2}), ("servers", {"workers": 1, "ps": 1})):
            with self.subTest(name):
                local, model = classifier(), classifier()
                watch = AtEpoch(1, lambda model=model: model.predict(data()[0], verbose=0))
                fit(local, f"{name}_here", **sizes)
                history = fit(model, name, callbacks=[watch],
                              cluster=muster.Slurm(**sizes, options=OPTIONS))
                self.assert_same_weights(model, local)
                self.assertEqual(history.epoch, [0, 1, 2])
                self.assertEqual(watch.epochs, [0, 1, 2])

    def test_a_run_is_attached_after_its_process_was_killed(self):
        child = os.fork()
        if child == 0:
            fit(classifier(), "attached", cluster=muster.Slurm(2, options=OPTIONS),
                callbacks=[AtEpoch(1, lambda: os.kill(os.getpid(), signal.SIGKILL))])
            os._exit(1)
        self.assertEqual(os.waitpid(child, 0)[1], signal.SIGKILL)
        local, model = classifier(), classifier()
        fit(local, "attached_here", workers=2)
        watch = AtEpoch(None, None)
        # The first process has not answered the event of epoch 1.
        history = muster.attach(model, os.path.join(FOLDER, "attached"), callbacks=[watch])
        self.assert_same_weights(model, local)
        self.assertEqual(history.epoch, [0, 1, 2])
        self.assertEqual(watch.epochs, [1, 2])

    def test_an_interrupt_ends_the_job(self):
        model = classifier()
        before = model.get_weights()
        with self.assertRaises(KeyboardInterrupt):
            fit(model, "interrupted", epochs=100000, cluster=muster.Slurm(2, options=OPTIONS),
                callbacks=[AtEpoch(2, lambda: signal.raise_signal(signal.SIGINT))])
        self.assertEqual(submitted_jobs(), "")
        self.assertFalse(np.array_equal(model.get_weights()[0], before[0]))

    def test_refusals_say_why(self):
        with self.assertRaisesRegex(muster.MusterError, "sbatch: .*invalid partition"):
            fit(classifier(), "refused",
                cluster=muster.Slurm(2, options=[*OPTIONS, "--partition=nowhere"]))
        with self.assertRaisesRegex(ValueError, "cluster=Slurm needs run_dir"):
            muster.fit(classifier(), *data(), cluster=muster.Slurm(2))
        with self.assertRaisesRegex(ValueError, "workers=3 and ps=0 are those of the cluster"):
            fit(classifier(), "twice", workers=3, cluster=muster.Slurm(2))
        with self.assertRaisesRegex(ValueError, "has no cluster.json"):
            muster.attach(classifier(), FOLDER)

    def test_a_failure_has_the_message_of_its_task(self):
        model = keras.Sequential([keras.Input((8,)), keras.layers.BatchNormalization(renorm=True),
                                  keras.layers.Dense(3)])
        model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
        with self.assertRaisesRegex(muster.MusterError, "renorm"):
            fit(model, "failed", cluster=muster.Slurm(2, options=OPTIONS))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
