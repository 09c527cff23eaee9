"""Arguments and callbacks as job files. Needs neither Keras nor NumPy."""

import unittest

from muster import callbacks, clusters, job, job_text
from muster.job_text import Word


def keras_callback(kind, **attributes):
    """Returns an object that looks like a callback of Keras."""
    made = type(kind, (), {"__module__": "keras.src.callbacks"})()
    made.__dict__.update(attributes)
    return made


def text_of(train=None, validation=None, **arguments):
    train = train or job.Data({"npy": {"features": "x.npy", "labels": "y.npy"}}, 100,
                              batch_size=32, can_be_shuffled=True)
    return job_text.job_text(
        job.job_fields(job.normalized(job.Arguments(**arguments)), train, validation))


class JobTextTest(unittest.TestCase):

    def test_values(self):
        self.assertEqual(
            job_text.job_text({"a": 1, "b": 0.5, "c": True, "d": 'x"\\\n', "e": Word("MIN"),
                               "f": None, "g": {"h": [1, 2], "i": {}}, "j": [{"k": 1}, {}],
                               "l": float("inf")}),
            'a: 1\nb: 0.5\nc: true\nd: "x\\"\\\\\\n"\ne: MIN\n'
            "g {\n  h: 1\n  h: 2\n  i {}\n}\nj {\n  k: 1\n}\nj {}\nl: inf\n")

    def test_variables_stand_at_the_start_only(self):
        self.assertEqual(job_text.quoted("${run_dir}/a"), '"${run_dir}/a"')
        with self.assertRaisesRegex(ValueError, "contains"):
            job_text.quoted("/a/${b}")

    def test_other_values_are_refused(self):
        with self.assertRaisesRegex(TypeError, "no object"):
            job_text.job_text({"a": object()})


class BatchSizesTest(unittest.TestCase):

    def sizes(self, batch_size, example_count, **arguments):
        return job.batch_sizes(job.Arguments(**arguments), batch_size, example_count)

    def test_one_process_has_the_batch_and_the_rest(self):
        self.assertEqual(self.sizes(32, 200), [32, 8])
        self.assertEqual(self.sizes(32, 64), [32])
        self.assertEqual(self.sizes(32, 5), [5])

    def test_workers_divide_batches(self):
        self.assertEqual(self.sizes(32, 192, workers=3), [11, 10])
        # A rest of 8 is 3, 3 and 2; one of a worker's part, 2 or 3, is 1 for each.
        self.assertEqual(self.sizes(32, 200, workers=3), [11, 10, 3, 2, 1])
        self.assertEqual(self.sizes(8, 8, strategy={"mirrored": {"devices": ["cpu:0", "cpu:1"]}}),
                         [4])

    def test_workers_of_parameter_servers_have_whole_batches(self):
        # The rest of all data, and of half of it.
        self.assertEqual(self.sizes(32, 200, workers=2, ps=1), [32, 8, 4])


class JobTest(unittest.TestCase):

    def test_defaults(self):
        text = text_of()
        self.assertIn('model {\n  keras: "${job_dir}/model.keras"\n}', text)
        self.assertIn("shuffle {\n    buffer: 100\n  }", text)
        self.assertIn("batch_size: 32\nepochs: 1\n", text)
        for absent in ("strategy", "validation", "seed", "class_weight", "steps_per_epoch",
                       "repeat", "initial_epoch"):
            self.assertNotIn(absent, text)

    def test_batches_are_used_once(self):
        def batches():
            return job.Data({"npy": {"features": "x.npy"}}, 100, 32, is_used_once_per_pass=True)

        text = text_of(batches(), workers=2, ps=1)
        self.assertIn("parameter_server {\n    dispatch_batches: true\n  }", text)
        self.assertNotIn("auto_shard_policy", text)
        text = text_of(batches(), workers=2, ps=1,
                       strategy={"parameter_server": {"dispatch_batches": False,
                                                      "min_workers": 1}})
        self.assertIn("dispatch_batches: false\n    min_workers: 1", text)
        text = text_of(batches(), workers=2)
        self.assertIn('auto_shard_policy: "DATA"', text)
        self.assertNotIn("dispatch_batches", text)
        self.assertNotIn("dispatch_batches", text_of(workers=2, ps=1))

    def test_arguments(self):
        text = text_of(
            validation=job.Data({"npy": {"features": "v.npy", "labels": "w.npy"}}, 10),
            epochs=5, initial_epoch=2, shuffle=False, class_weight={0: 1, 1: 2.5},
            steps_per_epoch=3, validation_freq=[1, 3], seed=7)
        for expected in ("batch_size: 32\nepochs: 5\ninitial_epoch: 2\nsteps_per_epoch: 3\n"
                         "validation_freq: 1\nvalidation_freq: 3\n",
                         "class_weight {\n  key: 1\n  value: 2.5\n}", "seed: 7\n",
                         'validation {\n  npy {\n    features: "v.npy"'):
            self.assertIn(expected, text)
        self.assertNotIn("shuffle", text)

    def test_strategies(self):
        self.assertIn("strategy {\n  parameter_server {}\n}",
                      text_of(strategy="parameter_server", workers=2, ps=1))
        self.assertIn('mirrored {\n    devices: "cpu:0"\n    devices: "cpu:1"\n  }',
                      text_of(strategy={"mirrored": {"devices": ["cpu:0", "cpu:1"]}}))
        self.assertIn("multi_worker_mirrored {\n    sharded_state: OPTIMIZER\n  }",
                      text_of(strategy={"multi_worker_mirrored": {"sharded_state": "OPTIMIZER"}},
                              workers=2))
        for message, arguments in (
                ("expected one of NONE, OPTIMIZER",
                 {"strategy": {"multi_worker_mirrored": {"sharded_state": "ALL"}}, "workers": 2}),
                ("of the strategy multi_worker_mirrored; got the strategy mirrored",
                 {"strategy": {"mirrored": {"sharded_state": "OPTIMIZER"}}}),
                ("got workers=2 and ps=0", {"strategy": "parameter_server", "workers": 2}),
                ("has no parameter servers", {"strategy": "multi_worker_mirrored", "workers": 1,
                                              "ps": 1}),
                ("is of one process", {"strategy": "mirrored", "workers": 2}),
                ("expected one of default", {"strategy": "horovod"}),
                ("needs workers", {"ps": 1}),
                ("at least 0", {"workers": -1})):
            with self.assertRaisesRegex(ValueError, message):
                text_of(**arguments)

    def test_parts_of_data(self):
        source = {"csv": {"path": "a.csv", "label": "b"}}
        text = text_of(job.Data(source, 80, batch_size=20, take=80),
                       job.Data(source, 20, skip=80))
        self.assertIn("take: 80\n", text)
        self.assertIn("skip: 80\n", text)
        self.assertNotIn("shuffle", text)
        self.assertNotIn("validation", text_of(validation=job.Data(source, 20),
                                               validation_freq=[]))

    def test_forms_that_keras_accepts(self):
        class Number:
            """Has the interface of NumPy's integers."""

            def __index__(self):
                return 3

        found = job.normalized(job.Arguments(
            batch_size=0, epochs=Number(), shuffle=1, class_weight={0.0: 1, True: "2.5"},
            callbacks=keras_callback("TerminateOnNaN"), validation_freq=(1, 2)))
        self.assertEqual((found.batch_size, found.epochs, found.shuffle), (None, 3, True))
        self.assertEqual((found.class_weight, found.validation_freq), ({0: 1.0, 1: 2.5}, [1, 2]))
        self.assertEqual(len(found.callbacks), 1)

    def test_mistakes_are_named(self):
        for message, arguments in (
                ("shuffle='batch' is not supported", {"shuffle": "batch"}),
                ("epochs=1.5; expected an integer", {"epochs": 1.5}),
                ("epochs=-1; expected", {"epochs": -1}),
                ("batch_size=-2; expected an integer of at least 1", {"batch_size": -2}),
                ("steps_per_epoch=2.0; expected", {"steps_per_epoch": 2.0}),
                ("validation_freq=0; expected", {"validation_freq": 0}),
                ("validation_split=1.5; expected at least 0", {"validation_split": 1.5}),
                ("validation_split='a'; expected a number", {"validation_split": "a"}),
                ("class_weight has the key 0.5", {"class_weight": {0.5: 1}}),
                ("class_weight has the key 'a'", {"class_weight": {"a": 1}}),
                ("class_weight has -1: 2", {"class_weight": {-1: 2}}),
                ("class_weight has 1: -2", {"class_weight": {1: -2}}),
                ("class_weight is .1, 2.; expected a dict", {"class_weight": [1, 2]})):
            with self.subTest(message), self.assertRaisesRegex(ValueError, message):
                job.normalized(job.Arguments(**arguments))

    def test_steps(self):
        train = job.Data({}, 100, batch_size=32)
        self.assertEqual(job.step_count(job.Arguments(), train), 4)
        self.assertEqual(job.step_count(job.Arguments(steps_per_epoch=9), train), 9)


class LocalTest(unittest.TestCase):

    def test_workers_continue_if_enough_are_left(self):
        run = clusters.Job("launch", "a.job", "/runs/1", False, False)
        continues = {"--min_workers=2", "--restart"}
        self.assertLessEqual(continues, set(clusters.Local(3, min_workers=2).start(run)))
        self.assertFalse(continues & set(clusters.Local(3).start(run)))
        for least in (4, -1, True, 1.5):
            with self.subTest(least), self.assertRaisesRegex(
                    ValueError, "min_workers=.*; expected 0 to 3, the number of workers"):
                clusters.check_counts(clusters.Local(3, min_workers=least))


class CallbacksTest(unittest.TestCase):

    def test_attributes_are_translated(self):
        stopping = keras_callback(
            "EarlyStopping", monitor="val_loss", min_delta=-0.5, patience=3, verbose=0, mode="min",
            baseline=None, restore_best_weights=True, start_from_epoch=1)
        self.assertEqual(
            callbacks.translate(stopping),
            {"early_stopping": {"monitor": "val_loss", "min_delta": 0.5, "patience": 3,
                                "verbose": 0, "mode": "MIN", "baseline": None,
                                "restore_best_weights": True, "start_from_epoch": 1}})
        text = text_of(callbacks=[stopping])
        self.assertIn("mode: MIN\n    restore_best_weights: true\n", text)
        logger = keras_callback("CSVLogger", filename="/a/log.csv", sep=";", append=True)
        self.assertEqual(callbacks.translate(logger)["csv_logger"]["separator"], ";")

    def test_checkpoints(self):
        attributes = {"filepath": "/a/w-{epoch:02d}.keras", "monitor": "loss", "mode": "auto",
                      "verbose": 0, "save_best_only": True, "save_weights_only": False,
                      "save_freq": "epoch", "best": 0.5}
        fields = callbacks.translate(keras_callback("ModelCheckpoint", **attributes))
        self.assertEqual(fields["model_checkpoint"]["initial_value_threshold"], 0.5)
        self.assertIsNone(fields["model_checkpoint"]["save_freq"])
        attributes["filepath"] = "/a/w.h5"
        with self.assertRaisesRegex(ValueError, "ends in .keras or .weights.h5"):
            callbacks.translate(keras_callback("ModelCheckpoint", **attributes))

    def test_lists_of_callbacks(self):
        one, two = keras_callback("TerminateOnNaN"), keras_callback("History")
        for given, expected in ((None, []), (one, [one]), ([one, [two]], [one, two]),
                                ((one,), [one]), ({"a": two}, [two]),
                                (keras_callback("CallbackList", callbacks=[one, two]),
                                 [one, two])):
            self.assertEqual(callbacks.flatten(given), expected)
        self.assertTrue(callbacks.is_history(two))
        # The cluster need not run these callbacks.
        for kind in ("Callback", "History", "ProgbarLogger"):
            self.assertIsNone(callbacks.translate(keras_callback(kind)))

    def test_neighbours_that_are_python_code_are_a_group(self):
        schedule, own = keras_callback("LearningRateScheduler"), keras_callback("LambdaCallback")
        # A subclass may run any Python code.
        stopping = type("EarlyStopping", (), {"__module__": "__main__"})()
        known = keras_callback("TerminateOnNaN")
        for callback in (schedule, own, stopping):
            self.assertTrue(callbacks.is_own(callback))
        self.assertFalse(callbacks.is_own(known))
        self.assertEqual(callbacks.own_groups([schedule, own, known, stopping]),
                         [[schedule, own], [stopping]])
        self.assertEqual(callbacks.own_groups([known]), [])

    def test_options_without_equivalent_are_refused(self):
        with self.assertRaisesRegex(ValueError, "double_checkpoint"):
            callbacks.translate(keras_callback(
                "BackupAndRestore", double_checkpoint=True))


if __name__ == "__main__":
    unittest.main()
