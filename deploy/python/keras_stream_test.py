"""Compares muster.fit(), on batches drawn while the cluster trains, with Keras' fit()."""

import contextlib
import glob
import io
import os
import tempfile
import unittest

from test_models import TOLERANCE, binary, data, keras, np, tasks_of

import muster


def fit(model, *arguments, **options):
    with contextlib.redirect_stdout(io.StringIO()):
        return muster.fit(model, *arguments, **options)


class StreamTest(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def test_generators_without_end(self):
        x, y = data()
        drawn = []

        def batches():
            while True:
                for begin in range(0, 180, 60):
                    drawn.append(begin)
                    yield x[begin:begin + 60], y[begin:begin + 60] % 2

        expected = binary()
        expected.fit(x[:180], y[:180] % 2, batch_size=60, epochs=2, shuffle=False, verbose=0)
        for cluster in ({}, {"workers": 2},
                        {"strategy": {"parameter_server": {"steps_in_flight_per_worker": 1}},
                         "workers": 1, "ps": 1}):
            with self.subTest(cluster=cluster):
                drawn.clear()
                model = binary()
                fit(model, batches(), steps_per_epoch=3, epochs=2, **cluster)
                for one, other in zip(model.get_weights(), expected.get_weights()):
                    np.testing.assert_allclose(one, other, atol=TOLERANCE)
                self.assertEqual(len(drawn), 6)

    def test_batches_are_drawn_while_the_cluster_trains(self):
        x, y = data()
        steps, epochs = 100, 3
        drawn_at_epochs = []

        class Shown(io.StringIO):
            def write(self, text):
                drawn_at_epochs.extend([len(drawn)] * text.count("Epoch "))
                return super().write(text)

        for cluster in ({}, {"workers": 2}, {"strategy": "mirrored"}, {"workers": 2, "ps": 2}):
            with self.subTest(cluster=cluster):
                drawn, most = [], 0
                drawn_at_epochs.clear()
                run_dir = tempfile.mkdtemp(dir=self.folder)

                def batches():
                    nonlocal most
                    while True:
                        drawn.append(len(drawn))
                        found = glob.glob(os.path.join(run_dir, "data", "stream", "batch_*"))
                        most = max(most, len(found))
                        yield x[:20], y[:20] % 2

                with contextlib.redirect_stdout(Shown()):
                    history = muster.fit(binary(), batches(), steps_per_epoch=steps,
                                         epochs=epochs, run_dir=run_dir, **cluster)
                self.assertEqual(len(history.history["loss"]), epochs)
                self.assertEqual(len(drawn), steps * epochs)
                self.assertLessEqual(most, 64)
                # 64 batches are on disk, and the tasks have read a few more ahead.
                self.assertLess(drawn_at_epochs[0], steps)
                self.assertFalse(os.path.exists(os.path.join(run_dir, "data", "stream")))

    def test_errors_of_a_generator_end_the_cluster(self):
        x, y = data()

        def failing(count):
            for _ in range(count):
                yield x[:20], y[:20] % 2
            raise LookupError("no more rows")

        for cluster in ({"workers": 2}, {"workers": 1, "ps": 1}):
            with self.subTest(cluster=cluster):
                model = binary()
                before = model.get_weights()
                run_dir = tempfile.mkdtemp(dir=self.folder)
                with self.assertRaisesRegex(LookupError, "no more rows"):
                    fit(model, failing(150), steps_per_epoch=50, epochs=5,
                                    run_dir=run_dir, **cluster)
                self.assertEqual(tasks_of(run_dir), [])
                # The model has the weights of a completed epoch.
                self.assertFalse(np.allclose(model.get_weights()[0], before[0]))
        with self.assertRaisesRegex(LookupError, "no more rows"):
            fit(binary(), failing(0), steps_per_epoch=2)

    def test_a_generator_that_ends_early_ends_the_training(self):
        x, y = data()
        for cluster in ({}, {"workers": 2}, {"workers": 2, "ps": 1}):
            with self.subTest(cluster=cluster):
                history = fit(binary(), iter([(x[:20], y[:20] % 2)] * 5),
                                          steps_per_epoch=3, epochs=4, **cluster)
                self.assertEqual(len(history.history["loss"]), 2)

    def test_a_resumed_run_passes_over_used_batches(self):
        x, y = data()

        def batches():
            while True:
                for begin in range(0, 180, 20):
                    yield x[begin:begin + 20], y[begin:begin + 20] % 2

        expected = binary()
        expected.fit(batches(), steps_per_epoch=7, epochs=4, verbose=0)
        keras.utils.clear_session()  # Layers of a resumed run have the same names.
        model = binary()
        backup = keras.callbacks.BackupAndRestore(self.path("backup"), save_freq="epoch",
                                                  delete_checkpoint=False)
        fit(model, batches(), steps_per_epoch=7, epochs=2, callbacks=[backup])
        keras.utils.clear_session()
        model = binary()
        history = fit(model, batches(), steps_per_epoch=7, epochs=4,
                                  callbacks=[backup])
        self.assertEqual(history.epoch, [0, 1, 2, 3])
        for one, other in zip(model.get_weights(), expected.get_weights()):
            np.testing.assert_allclose(one, other, atol=TOLERANCE)


if __name__ == "__main__":
    unittest.main()
