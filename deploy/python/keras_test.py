"""Compares muster.fit() with Keras' fit(). MUSTER_KERAS_PYTHON names a Python with Keras."""

import contextlib
import glob
import importlib.util
import io
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import unittest
import unittest.mock
import warnings

from test_models import FEATURES, ROWS, TOLERANCE, binary, data, keras, np, tasks_of

import muster
from muster import executables


def classifier(optimizer="adam", **compile_options):
    keras.utils.set_random_seed(1)
    model = keras.Sequential([
        keras.Input((FEATURES,)),
        keras.layers.Dense(16, activation="relu"),
        keras.layers.BatchNormalization(),
        keras.layers.Dense(3, activation="softmax"),
    ])
    compile_options.setdefault("metrics", ["accuracy"])
    model.compile(optimizer, "sparse_categorical_crossentropy", **compile_options)
    return model


def two_by_two():
    keras.utils.set_random_seed(3)
    left, right = keras.Input((FEATURES,), name="left"), keras.Input((2,), name="right")
    both = keras.layers.Concatenate()([left, right])
    hidden = keras.layers.Dense(8, activation="relu")(both)
    model = keras.Model([left, right], [keras.layers.Dense(1, name="size")(hidden),
                                        keras.layers.Dense(3, name="kind")(hidden)])
    model.compile("sgd", {"size": "mse",
                          "kind": keras.losses.SparseCategoricalCrossentropy(from_logits=True)})
    return model


def of_image(x):
    layers = keras.layers
    for layer in (layers.RandomFlip(seed=1), layers.Rescaling(0.5), layers.Conv2D(4, 3),
                  layers.DepthwiseConv2D(2), layers.SeparableConv2D(4, 2),
                  layers.Conv2DTranspose(4, 2), layers.BatchNormalization(),
                  layers.GroupNormalization(2), layers.PReLU(), layers.SpatialDropout2D(0.1),
                  layers.GaussianNoise(0.1), layers.GlobalAveragePooling2D()):
        x = layer(x)
    return x


def of_sequence(x):
    layers = keras.layers
    x = layers.Embedding(10, 4)(x)
    x = layers.Add()([x, layers.MultiHeadAttention(2, 2)(x, x),
                      layers.GroupQueryAttention(2, 2, 1)(x, x)])
    for layer in (layers.LayerNormalization(), layers.RMSNormalization(),
                  layers.TimeDistributed(layers.Dense(4)),
                  layers.EinsumDense("abc,cd->abd", output_shape=(None, 4), bias_axes="d"),
                  layers.Bidirectional(layers.LSTM(3, return_sequences=True)),
                  layers.GRU(3, return_sequences=True),
                  layers.SimpleRNN(3, return_sequences=True, dropout=0.1),
                  layers.RNN([layers.LSTMCell(3), layers.GRUCell(3)], return_sequences=True),
                  layers.Conv1D(3, 2)):
        x = layer(x)
    x = layers.Concatenate()([layers.Attention(use_scale=True)([x, x]),
                              layers.AdditiveAttention()([x, x])])
    return layers.GlobalMaxPooling1D()(x)


def of_vector(x):
    layers = keras.layers
    for layer in (layers.SpectralNormalization(layers.Dense(4)), layers.AlphaDropout(0.1),
                  layers.UnitNormalization(), layers.ActivityRegularization(0.01)):
        x = layer(x)
    return x


class FitTest(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def muster_fit(self, model, *arguments, **options):
        """Returns the history, and stores the output of fit() in self.output."""
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            history = muster.fit(model, *arguments, **options)
        self.output = output.getvalue()
        return history

    def compare(self, make_model, *arguments, cluster=None, tolerance=TOLERANCE, **options):
        """Trains a model with Keras and with Muster. Returns (Keras' model, Muster's model)."""
        expected_model, model = make_model(), make_model()
        options.setdefault("shuffle", False)
        expected = expected_model.fit(*arguments, verbose=0, **options)
        found = self.muster_fit(model, *arguments, **options, **(cluster or {}))
        self.assertEqual(set(found.history), set(expected.history))
        for name, values in expected.history.items():
            np.testing.assert_allclose(found.history[name], values, atol=tolerance, err_msg=name)
        self.assertEqual(found.epoch, expected.epoch)
        self.assertEqual((found.params["epochs"], found.params["steps"]),
                         (expected.params["epochs"], expected.params["steps"]))
        self.assertIs(model.history, found)
        for one, other in zip(model.get_weights(), expected_model.get_weights()):
            np.testing.assert_allclose(one, other, atol=tolerance)
        return expected_model, model

    def test_an_epoch_of_arrays_has_each_example_once(self):
        y = np.arange(64, dtype="float32")[:, None]
        for shuffle in (False, True):
            with self.subTest(shuffle=shuffle):
                model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(
                    1, kernel_initializer="zeros")])
                model.compile(keras.optimizers.SGD(0.0), "mae")  # The loss is the mean of y.
                history = self.muster_fit(model, y, y, batch_size=8, epochs=3, workers=2, ps=1,
                                          shuffle=shuffle)
                self.assertEqual(history.history["loss"], [31.5] * 3)

    def test_parameter_servers_write_where_callbacks_say(self):
        x = np.zeros((8, 4), "float32")
        model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
        model.compile("sgd", "mse")
        self.muster_fit(model, x, x[:, :1], epochs=2, workers=1, ps=2, callbacks=[
            keras.callbacks.ModelCheckpoint(self.path("a/{epoch}.keras")),
            keras.callbacks.BackupAndRestore(self.path("b"))])
        self.assertEqual(sorted(os.listdir(self.path("a"))), ["1.keras", "2.keras"])

    def test_dtype_policies(self):
        def make(policy):
            keras.mixed_precision.set_global_policy(policy)
            try:
                model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
                model.compile("sgd", "mse")
            finally:
                keras.mixed_precision.set_global_policy("float32")
            return model

        x = np.ones((8, 4), "float32")
        self.muster_fit(make("mixed_bfloat16"), x, x[:, :1])  # The policy need not be set now.
        for policy in ("bfloat16", "float64"):
            with self.subTest(policy), self.assertRaisesRegex(
                    ValueError, f"has the dtype policy {policy}; expected float32, mixed_bfloat16"):
                muster.fit(make(policy), x, x[:, :1])

    def test_rows_of_embeddings_without_gradient_move_as_in_keras(self):
        def make():
            keras.utils.set_random_seed(1)
            model = keras.Sequential([keras.Input((3,), dtype="int32"),
                                      keras.layers.Embedding(40, 4), keras.layers.Flatten(),
                                      keras.layers.Dense(1)])
            model.compile(keras.optimizers.Adam(0.01), "mse")
            return model

        # No row occurs twice in a batch: on TensorFlow, Keras would not add up its gradients.
        generator = np.random.default_rng(1)
        x = np.concatenate([generator.permutation(40)[:24].reshape(8, 3) for _ in range(8)])
        x = x.astype("int32")
        y = x.sum(axis=1).astype("float32")[:, None] / 40
        for cluster in ({}, {"workers": 2}):
            with self.subTest(cluster=cluster):
                self.compare(make, x, y, batch_size=8, epochs=3, cluster=cluster)
        path = self.path("again.keras")
        model = make()
        self.muster_fit(model, x, y, batch_size=8, callbacks=[
            keras.callbacks.ModelCheckpoint(path)])
        keras.models.load_model(path)  # The file has no argument that Keras lacks.
        with self.assertRaisesRegex(ValueError, "embedding_updates is 'some'; expected one of"):
            muster.fit(make(), x, y, embedding_updates="some")

    def test_clusters_train_as_keras_does(self):
        x, y = data()
        validation = data(seed=1)
        for cluster in (
                {}, {"workers": 2}, {"strategy": "multi_worker_mirrored", "workers": 2},
                {"strategy": {"mirrored": {"devices": ["cpu:0", "cpu:1"]}}},
                {"strategy": "one_device"}, {"strategy": "default"},
                {"strategy": {"central_storage": {"compute_devices": ["cpu:0", "cpu:1"]}}},
                # One worker, one step at a time: nothing is asynchronous.
                {"strategy": {"parameter_server": {"steps_in_flight_per_worker": 1}},
                 "workers": 1, "ps": 2}):
            with self.subTest(cluster=cluster):
                # A model without batch normalization, whose replicas would see parts of batches.
                self.compare(binary, x, y % 2, batch_size=32, epochs=3, cluster=cluster,
                             validation_data=(validation[0], validation[1] % 2))

    def test_training_goes_on_with_the_optimizers_state(self):
        x, y = data()
        expected, model = self.compare(classifier, x, y, epochs=2, validation_split=0.25)
        self.assertEqual(int(model.optimizer.iterations), int(expected.optimizer.iterations))
        for one, other in zip(model.optimizer.variables, expected.optimizer.variables):
            np.testing.assert_allclose(one.numpy(), other.numpy(), atol=TOLERANCE)
        history = self.muster_fit(model, x, y, epochs=3, initial_epoch=2, shuffle=False)
        np.testing.assert_allclose(
            history.history["loss"],
            expected.fit(x, y, epochs=3, initial_epoch=2, shuffle=False, verbose=0)
            .history["loss"], atol=TOLERANCE)

    def test_mixed_float16_scales_the_loss(self):
        keras.config.set_dtype_policy("mixed_float16")
        self.addCleanup(keras.config.set_dtype_policy, "float32")
        x, y = data()
        for cluster in ({}, {"strategy": "multi_worker_mirrored", "workers": 2}):
            with self.subTest(cluster=cluster):
                expected, model = self.compare(binary, x, y % 2, epochs=2, cluster=cluster,
                                               tolerance=2e-2)
                for name in ("dynamic_scale", "step_counter", "iterations"):
                    self.assertEqual(float(getattr(model.optimizer, name)),
                                     float(getattr(expected.optimizer, name)), name)
                self.assertGreater(float(model.optimizer.step_counter), 0)

    def test_steps_of_an_epoch(self):
        x, y = data()
        self.compare(classifier, x, y, batch_size=32, epochs=2, steps_per_epoch=3,
                     validation_data=(x, y), validation_steps=2, validation_freq=[2])

    def test_steps_go_on_where_the_epoch_before_ended(self):
        x, y = data()
        # There are 7 batches of 3 for each epoch, so one is left for the third epoch.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Keras warns that the data has ended.
            self.compare(classifier, x, y, batch_size=32, epochs=4, steps_per_epoch=3)
        # Without batch_size, the number of steps determines the size of batches.
        self.compare(classifier, x, y, epochs=2, steps_per_epoch=4, validation_data=(x, y),
                     validation_steps=3)
        self.compare(classifier, x, y, batch_size=32, epochs=2, validation_batch_size=7,
                     validation_steps=2, validation_split=np.float32(0.3))

    def test_forms_of_arguments(self):
        x, y = data()
        found = self.muster_fit(binary(), x, y % 2,
                                  validation_data=iter([(x[:7], y[:7] % 2)]))
        self.assertIn("val_loss", found.history)
        history = keras.callbacks.History()
        found = self.muster_fit(binary(), x, y % 2, callbacks=history,
                                class_weight={0.0: 2.0, np.int64(1): 0.5}, shuffle=False)
        self.assertIs(found, history)
        expected = binary().fit(x, y % 2, class_weight={0: 2.0, 1: 0.5}, shuffle=False, verbose=0)
        np.testing.assert_allclose(found.history["loss"], expected.history["loss"],
                                   atol=TOLERANCE)
        before = binary()
        self.assertEqual(self.muster_fit(before, x, y % 2, epochs=0).history, {})
        if importlib.util.find_spec("pandas"):
            import pandas as pd

            frame = pd.DataFrame(x.astype("float64"))
            found = self.muster_fit(binary(), frame, pd.Series(y % 2), shuffle=False)
            expected = binary().fit(x, y % 2, shuffle=False, verbose=0)
            np.testing.assert_allclose(found.history["loss"], expected.history["loss"],
                                       atol=TOLERANCE)

    def test_structures_of_inputs(self):
        x, y = data()

        def make():
            keras.utils.set_random_seed(3)
            late, early = keras.Input((FEATURES,), name="a"), keras.Input((2,), name="b")
            both = keras.layers.Concatenate()([late, early])
            # The keys are not the inputs' names, and have another order.
            model = keras.Model({"z": late, "y": early}, keras.layers.Dense(1)(both))
            model.compile("sgd", "mse")
            return model

        self.compare(make, {"z": x, "y": x[:, :2]}, x.sum(1), epochs=2)

    def test_adapted_layers(self):
        x, _ = data()

        def make():
            keras.utils.set_random_seed(1)
            scaled = keras.layers.Normalization()
            scaled.adapt(5 * x + 20)
            model = keras.Sequential([keras.Input((FEATURES,)), scaled, keras.layers.Dense(1)])
            model.compile("adam", "mse")
            return model

        _, model = self.compare(make, 5 * x + 20, x.sum(1), epochs=2)
        history = self.muster_fit(model, 5 * x + 20, x.sum(1), epochs=3, initial_epoch=2)
        self.assertEqual(history.epoch, [2])

    def test_layers_of_all_kinds_get_their_weights(self):
        inputs = [keras.Input((8, 8, 3)), keras.Input((6,), dtype="int32"), keras.Input((5,))]
        outputs = keras.layers.Concatenate()(
            [of(x) for of, x in zip((of_image, of_sequence, of_vector), inputs)])
        model = keras.Model(inputs, keras.layers.Dense(1)(outputs))
        model.compile(keras.optimizers.Adam(0.01, use_ema=True), "mse")
        before = model.get_weights()
        generator = np.random.default_rng(0)
        x = [generator.random((16, 8, 8, 3)), generator.integers(0, 10, (16, 6)),
             generator.normal(size=(16, 5))]
        self.muster_fit(model, x, x[2].sum(1), batch_size=8)
        self.assertEqual(int(model.optimizer.iterations), 2)
        stayed = [weight.path for weight, value in zip(model.weights, before)
                  if weight.trainable and np.array_equal(weight, value)]
        self.assertEqual(stayed, [])

    def test_strings(self):
        if keras.backend.backend() != "tensorflow":
            self.skipTest("these layers of Keras need TensorFlow")
        import tensorflow as tf

        words = np.array([["north"], ["süd"], ["east"], ["north"]] * 4)
        y = np.array([[1], [2], [3], [1]] * 4, "float32")

        def make():
            keras.utils.set_random_seed(1)
            lookup = keras.layers.StringLookup(output_mode="one_hot")
            lookup.adapt(tf.constant(words))
            model = keras.Sequential([keras.Input((1,), dtype="string"), lookup,
                                      keras.layers.Dense(1)])
            model.compile("sgd", "mse")
            return model

        expected = make().fit(tf.constant(words), y, batch_size=8, shuffle=False, verbose=0)
        for x in (words, words.astype(object), np.char.encode(words), tf.constant(words),
                  words[:, 0]):
            found = self.muster_fit(make(), x, y, batch_size=8, shuffle=False)
            np.testing.assert_allclose(found.history["loss"], expected.history["loss"],
                                       atol=TOLERANCE)

    def test_arguments_that_configs_lack(self):
        generator = np.random.default_rng(0)
        x, y = (3 * generator.normal(size=(64, 4, 3)).astype("float32") for _ in range(2))
        for options in ({"loss": keras.losses.Huber(delta=0.1)},
                        {"loss": keras.losses.CosineSimilarity(axis=1)},
                        {"loss": "mse", "metrics": [keras.metrics.CosineSimilarity(axis=1)]}):
            def make(options=options):
                keras.utils.set_random_seed(1)
                model = keras.Sequential([keras.Input((4, 3)), keras.layers.Dense(3)])
                model.compile(keras.optimizers.SGD(0.1), **options)
                return model

            self.compare(make, x, y, batch_size=16, epochs=2)

    def test_training_of_a_call_is_that_of_fit(self):
        x, _ = data()

        def make():
            keras.utils.set_random_seed(1)
            base = keras.Sequential([keras.Input((FEATURES,)), keras.layers.Dense(4),
                                     keras.layers.BatchNormalization(momentum=0.5)])
            inputs = keras.Input((FEATURES,))
            model = keras.Model(inputs, keras.layers.Dense(1)(base(inputs, training=False)))
            model.compile("sgd", "mse")
            return model

        self.compare(make, x, x.sum(1), epochs=2)
        self.assertIn("training=False of its call is replaced by that of fit()", self.output)

    def test_a_result_that_cannot_be_loaded_is_kept(self):
        x, y = data()
        model = binary()
        with unittest.mock.patch("muster.model_file.load_weights",
                                 side_effect=ValueError("no such layer")), \
                self.assertRaisesRegex(muster.MusterError,
                                       "cannot be loaded: no such layer. /.* keeps") as caught:
            self.muster_fit(model, x, y % 2)
        folder = re.search(r"no such layer\. (/\S+) keeps", str(caught.exception)).group(1)
        self.addCleanup(shutil.rmtree, folder)
        self.assertTrue(os.path.exists(os.path.join(folder, "final_model.keras")))

    def test_asynchronous_workers_learn(self):
        x, _ = data()
        y = (x.sum(1) > 0).astype("float32")
        model = binary(keras.optimizers.Adam(0.01))
        history = self.muster_fit(model, x, y, epochs=15, workers=2, ps=2, seed=1,
                                  strategy="parameter_server")
        self.assertGreater(history.history["accuracy"][-1], 0.9)
        loss, accuracy = model.evaluate(x, y, verbose=0)
        self.assertGreater(accuracy, 0.9)
        self.assertLess(loss, history.history["loss"][0])

    def test_weights_of_examples_and_classes(self):
        x, y = data()
        weights = np.linspace(0, 2, ROWS)
        self.compare(classifier, x, y, epochs=2, sample_weight=weights)
        self.compare(classifier, x, y, epochs=2, class_weight={0: 2.0, 2: 0.5})
        self.compare(classifier, x, y, epochs=2, validation_data=(x, y, weights))

    def test_several_inputs_and_outputs(self):
        x, y = data()
        inputs = {"left": x, "right": x[:, :2]}
        # All batches have one size, because Keras on TensorFlow does not weight the loss of
        # one output by the size of batches.
        self.compare(two_by_two, inputs, {"size": x.sum(1), "kind": y}, batch_size=40, epochs=2,
                     validation_split=0.2)
        self.compare(two_by_two, [x, x[:, :2]], [x.sum(1), y], batch_size=40, epochs=2,
                     cluster={"workers": 2})

    def test_batches(self):
        x, y = data()

        class Batches(keras.utils.PyDataset):

            def __len__(self):
                return 4

            def __getitem__(self, index):
                rows = slice(index * 60, (index + 1) * 60)
                return x[rows], y[rows]

        expected = classifier().fit(x, y, batch_size=60, shuffle=False, verbose=0, epochs=2)
        sources = [Batches(), iter([Batches()[index] for index in range(4)])]
        if keras.backend.backend() == "tensorflow":
            import tensorflow as tf

            sources.append(tf.data.Dataset.from_tensor_slices((x, y)).batch(60))
        for source in sources:
            history = self.muster_fit(classifier(), source, epochs=2)
            np.testing.assert_allclose(history.history["loss"], expected.history["loss"],
                                       atol=TOLERANCE)

    def test_files(self):
        x, y = data()
        np.save(self.path("x.npy"), x)
        np.save(self.path("y.npy"), y)
        with open(self.path("train.csv"), "w", encoding="utf-8") as file:
            file.write(",".join(f"f{i}" for i in range(FEATURES)) + ",kind\n")
            for row, label in zip(x, y):
                file.write(",".join(map(str, row)) + f",{label}\n")
        expected = classifier().fit(x, y, shuffle=False, verbose=0).history["loss"]
        for files in ((self.path("x.npy"), self.path("y.npy")),
                      (self.path("train.csv"), "kind")):
            found = self.muster_fit(classifier(), *files, shuffle=False)
            np.testing.assert_allclose(found.history["loss"], expected, atol=TOLERANCE)
            self.assertEqual(found.params["steps"], 7)

    def test_callbacks(self):
        x, y = data()

        def callbacks(name):
            return [
                keras.callbacks.EarlyStopping(monitor="val_loss", patience=3,
                                              restore_best_weights=True),
                keras.callbacks.ReduceLROnPlateau(monitor="val_loss", patience=1, factor=0.5,
                                                  cooldown=1),
                keras.callbacks.CSVLogger(self.path(name + ".csv")),
                keras.callbacks.ModelCheckpoint(self.path(name + ".keras"), monitor="val_loss",
                                                save_best_only=True),
                keras.callbacks.TerminateOnNaN(),
                keras.callbacks.BackupAndRestore(self.path(name + "_backup")),
            ]

        options = {"epochs": 20, "shuffle": False, "validation_split": 0.5}
        expected_model = classifier("rmsprop")
        expected = expected_model.fit(x, y, verbose=0, callbacks=callbacks("keras"), **options)
        model = classifier("rmsprop")
        # Keras needs TensorFlow and TensorBoard for this callback.
        board = keras.callbacks.TensorBoard(self.path("logs"))
        found = self.muster_fit(model, x, y, callbacks=callbacks("muster") + [board], **options)
        self.assertLess(len(expected.epoch), 20)
        self.assertEqual(found.epoch, expected.epoch)
        self.assertEqual(set(found.history), set(expected.history))
        np.testing.assert_allclose(found.history["learning_rate"],
                                   expected.history["learning_rate"], rtol=1e-5)
        np.testing.assert_allclose(found.history["val_loss"], expected.history["val_loss"],
                                   atol=1e-3)
        np.testing.assert_allclose(float(model.optimizer.learning_rate),
                                   float(expected_model.optimizer.learning_rate), rtol=1e-5)
        self.assertEqual(self.columns("muster.csv"), self.columns("keras.csv"))
        best = keras.models.load_model(self.path("muster.keras"))
        self.assertAlmostEqual(best.evaluate(x[100:], y[100:], verbose=0)[0],
                               min(found.history["val_loss"]), delta=1e-3)
        self.assertTrue(glob.glob(self.path("logs/train/*tfevents*")))

    def columns(self, name):
        with open(self.path(name), encoding="utf-8") as file:
            lines = file.read().splitlines()
        return lines[0], len(lines)

    def test_shuffling_depends_on_the_seed(self):
        x, y = data()
        losses = [self.muster_fit(classifier(), x, y, seed=seed).history["loss"][0]
                  for seed in (1, 1, 2)]
        self.assertEqual(losses[0], losses[1])
        self.assertNotEqual(losses[0], losses[2])

    def test_progress_is_shown_unless_silent(self):
        x, y = data()
        self.muster_fit(binary(), x, y % 2, epochs=2)
        self.assertIn("Epoch 2/2", self.output)
        # The folder has been removed.
        self.assertNotIn(tempfile.gettempdir(), self.output)
        self.muster_fit(binary(), x, y % 2, run_dir=self.path("run"))
        self.assertIn(self.path("run/summary.json"), self.output)
        self.muster_fit(binary(), x, y % 2, verbose=0)
        self.assertEqual(self.output, "")

    def test_mistakes_are_found_before_training(self):
        x, y = data()
        own_steps = type("OwnSteps", (keras.Sequential,), {
            "train_step": lambda self, *arguments: None})(binary().layers)
        own_steps.compile("sgd", "mse")
        not_compiled = keras.Sequential([keras.Input((FEATURES,)), keras.layers.Dense(1)])
        for message, model, options in (
                ("not compiled", not_compiled, {}),
                (r"OwnSteps overrides train_step\(\)", own_steps, {}),
                ("callbacks has 3", binary(), {"callbacks": [3]}),
                ("needs workers", binary(), {"ps": 1})):
            with self.subTest(message), self.assertRaisesRegex(ValueError, message):
                muster.fit(model, x, y, run_dir=self.path("run"), **options)
            self.assertFalse(os.path.exists(self.path("run/data")))

    def test_failures_have_the_tasks_message(self):
        x, y = data()
        model = keras.Sequential([keras.Input((FEATURES,)), keras.layers.Dense(4),
                                  keras.layers.BatchNormalization(renorm=True),
                                  keras.layers.Dense(1)])
        model.compile("sgd", "mse")
        run_dir = self.path("run")
        with self.assertRaisesRegex(muster.MusterError, "renorm") as caught:
            self.muster_fit(model, x, y, run_dir=run_dir)
        self.assertEqual(caught.exception.exit_code, 2)
        self.assertEqual(caught.exception.log_dir, os.path.join(run_dir, "logs"))
        with self.assertRaisesRegex(ValueError, "is not empty"):
            self.muster_fit(binary(), x, y % 2, run_dir=run_dir)

    def test_a_missing_result_is_an_error(self):
        launch = self.path("launch")
        with open(launch, "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\n")
        os.chmod(launch, 0o755)
        x, y = data()
        with unittest.mock.patch.dict(os.environ, {"MUSTER_BIN": self.path("")}), \
                self.assertRaisesRegex(muster.MusterError, "did not write .*final_model.keras"):
            muster.fit(binary(), x, y % 2, run_dir=self.path("run"))

    def test_a_written_job_trains_elsewhere(self):
        x, y = data()
        model = binary()
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            job = muster.write_job(model, x, y % 2, folder=self.path("job"), epochs=2, workers=2)
        self.assertEqual(output.getvalue(),
                         f"{executables.find_launch()} --job={job} --workers=2 --ps=0\n")
        moved = self.path("moved")
        os.rename(self.path("job"), moved)
        subprocess.run([executables.find_launch(), f"--job={moved}/model.job", "--workers=0",
                        "--ps=0", f"--run_dir={self.path('run')}"], check=True,
                       capture_output=True)
        trained = keras.models.load_model(self.path("run/final_model.keras"))
        self.assertEqual(int(trained.optimizer.iterations), 14)


INTERRUPTED = """
import sys
import numpy as np
import keras_test
import muster
x, y = keras_test.data()
model = keras_test.binary()
before = model.get_weights()[0].copy()
try:
    muster.fit(model, x, y % 2, epochs=1_000_000, run_dir=sys.argv[1], workers=1, ps=1)
except KeyboardInterrupt:
    changed = np.abs(model.get_weights()[0] - before).max() > 0
    print("interrupted", changed, int(model.optimizer.iterations) > 0, flush=True)
"""


class InterruptTest(unittest.TestCase):

    def test_ctrl_c_ends_the_cluster_and_keeps_the_weights(self):
        with tempfile.TemporaryDirectory() as folder:
            run_dir = os.path.join(folder, "run")
            process = subprocess.Popen(
                [sys.executable, "-B", "-c", textwrap.dedent(INTERRUPTED), run_dir],
                env={**os.environ, "PYTHONPATH": os.path.dirname(os.path.abspath(__file__))},
                stdout=subprocess.PIPE, text=True, start_new_session=True,
                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler))
            for line in process.stdout:
                if "Epoch 3/" in line:
                    break
            process.send_signal(signal.SIGINT)
            rest = process.communicate()[0]
            self.assertEqual(process.returncode, 0, rest)
            self.assertIn("interrupted True True\n", rest)
            self.assertEqual(tasks_of(run_dir), [])


if __name__ == "__main__":
    unittest.main()
