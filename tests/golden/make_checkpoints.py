"""Writes checkpoints/: checkpoints by TensorFlow, for tests of Muster's reader.

The files there were made with TensorFlow 2.21.0 on Python 3.11, whose licence is
Apache 2.0. They contain none of its code, only the numbers below. Other versions
are rejected, as in make_golden.py.

    python3 -m venv venv && venv/bin/pip install tensorflow-cpu==2.21.0
    venv/bin/python make_checkpoints.py

    dtypes          a tensor of each dtype, a scalar, an empty one, an int8
    partitioned     two shards; "table" is split by rows over both, "grid" by columns
    objects/        tf.train.CheckpointManager over objects, with a slot variable
    keras/          tf.train.Checkpoint(model=...) of Keras models: "functional",
                    "sequential", "trained" (the same with its optimizer), "subclassed";
                    and files that are not checkpoints, "whole.keras" and
                    "whole.weights.h5". The values of weight i are i, i + 1/8, i + 2/8, ...
    keras/training/ tf.train.Checkpoint(model=..., optimizer=...) of the models in TRAINED
                    after STEPS_BEFORE steps, and their weights after STEPS_AFTER more

With --training it writes keras/training/ only.
"""

import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""

import pathlib
import shutil
import sys

import keras
import numpy as np
import tensorflow as tf

from cases import schedule_free

VERSION = "2.21.0"
FOLDER = pathlib.Path(__file__).parent / "checkpoints"


def save(prefix, tensors):
    """tensors: {name: tensor} or {name: (tensor, slice specification)}."""
    values = [v if isinstance(v, tuple) else (v, "") for v in tensors.values()]
    tf.raw_ops.SaveV2(
        prefix=str(prefix),
        tensor_names=list(tensors),
        shape_and_slices=[specification for _, specification in values],
        tensors=[tf.convert_to_tensor(value) for value, _ in values])


def dtypes():
    count = np.arange(6).reshape(2, 3)
    save(FOLDER / "dtypes", {
        "float32": (count / 4).astype(np.float32),
        "float64": (count / 8).astype(np.float64),
        "bfloat16": tf.cast(count / 2, tf.bfloat16),
        "float16": (count / 2).astype(np.float16),
        "int32": (count - 3).astype(np.int32),
        "int64": (count - 3).astype(np.int64) << 40,
        "uint8": (count * 50).astype(np.uint8),
        "bool": count % 2 == 1,
        "string": np.array([["", "a"], ["zero \0 within", "x" * 300]]),
        "scalar": np.float32(-2.5),
        "empty": np.zeros((0, 3), np.float32),
        "int8": count.astype(np.int8),
    })


def partitioned():
    table = np.arange(28, dtype=np.float32).reshape(7, 4)
    grid = np.arange(15, dtype=np.int32).reshape(3, 5)
    parts = [FOLDER / "part_0", FOLDER / "part_1"]
    save(parts[0], {"table": (table[:3], "7 4 0,3:-"),
                    "grid": (grid[:, :2], "3 5 -:0,2"),
                    "only_in_0": np.int64(10)})
    save(parts[1], {"table": (table[3:], "7 4 3,4:0,4"),
                    "grid": (grid[:, 2:], "3 5 0,3:2,3"),
                    "only_in_1": np.array(["eleven"])})
    tf.raw_ops.MergeV2Checkpoints(
        checkpoint_prefixes=[str(part) for part in parts],
        destination_prefix=str(FOLDER / "partitioned"), delete_old_dirs=False)


def objects():
    model = tf.Module()
    model.dense = tf.Module()
    model.dense.kernel = tf.Variable([[1.0, 2.0], [3.0, 4.0]], name="dense/kernel")
    model.dense.bias = tf.Variable([0.5, -0.5], name="dense/bias")
    optimizer = tf.compat.v1.train.MomentumOptimizer(0.5, 0.75)
    named = {"a.b/c": tf.Variable(3.0), "step": tf.Variable(7, dtype=tf.int64)}
    checkpoint = tf.train.Checkpoint(model=model, optimizer=optimizer, **named)
    manager = tf.train.CheckpointManager(checkpoint, FOLDER / "objects", max_to_keep=2)
    for _ in range(3):
        optimizer.apply_gradients([(tf.ones((2, 2)), model.dense.kernel)])
        manager.save()


def functional():
    layers = keras.layers
    images = keras.Input((4, 4, 2))
    x = layers.Conv2D(2, 3, padding="same", use_bias=False, name="conv")(images)
    x = layers.BatchNormalization(name="norm")(x)
    y = layers.DepthwiseConv2D(3, padding="same", name="depthwise")(layers.ReLU()(x))
    x = layers.GlobalAveragePooling2D()(layers.Add()([x, y]))
    return keras.Model(images, layers.Dense(3, name="logits")(x))


def sequential():
    layers = keras.layers
    return keras.Sequential([
        keras.Input((3,)),
        layers.Dense(4, activation="relu", name="hidden"),
        layers.BatchNormalization(name="norm"),
        layers.Dropout(0.1),
        layers.Dense(2, name="logits"),
    ])


class Subclassed(keras.Model):
    def __init__(self):
        super().__init__()
        self.words = keras.layers.Embedding(5, 3)
        self.first = keras.layers.Dense(4)
        self.second = keras.layers.Dense(2)

    def call(self, ids):
        return self.second(self.first(self.words(ids)))


def with_values(model):
    model.set_weights([
        i + np.arange(np.prod(weight.shape), dtype=np.float32).reshape(weight.shape) / 8
        for i, weight in enumerate(model.weights)])
    return model


def keras_models():
    folder = FOLDER / "keras"
    folder.mkdir()
    subclassed = Subclassed()
    subclassed(np.int32([[0]]))
    for name, model in (("functional", functional()), ("sequential", sequential()),
                        ("subclassed", subclassed)):
        tf.train.Checkpoint(model=with_values(model)).write(str(folder / name))
    trained = sequential()
    trained.compile(keras.optimizers.Adam(), "mse")
    trained.fit(np.ones((4, 3)), np.ones((4, 2)), verbose=0)
    tf.train.Checkpoint(model=with_values(trained), optimizer=trained.optimizer).write(
        str(folder / "trained"))
    trained = with_values(sequential())
    trained.save(folder / "whole.keras")
    trained.save_weights(folder / "whole.weights.h5")


STEPS_BEFORE, STEPS_AFTER = 2, 3


def small():
    layers = keras.layers
    return keras.Sequential([
        keras.Input((3,)),
        layers.Dense(4, activation="relu", name="hidden"),
        layers.BatchNormalization(name="norm"),
        layers.Dense(4, activation="relu", name="between"),
        layers.Dense(2, name="logits"),
    ])


class SmallSubclassed(keras.Model):
    def __init__(self):
        super().__init__()
        self.first = keras.layers.Dense(4, activation="relu")
        self.second = keras.layers.Dense(2)

    def call(self, x):
        return self.second(self.first(x))


def small_subclassed():
    model = SmallSubclassed()
    model(np.zeros((1, 3), np.float32))
    return model


def mobilenet():
    return keras.applications.MobileNetV2(
        (32, 32, 3), alpha=0.01, weights=None, classes=2, classifier_activation=None)


# keras_checkpoints_golden_test.cc creates the optimizers with the same arguments.
OPTIMIZERS = {
    "adam": lambda: keras.optimizers.Adam(0.01),
    "amsgrad": lambda: keras.optimizers.Adam(0.01, amsgrad=True),
    "adamw": lambda: keras.optimizers.AdamW(0.01),
    "schedule": lambda: keras.optimizers.Adam(
        keras.optimizers.schedules.ExponentialDecay(0.02, 1, 0.5)),
    "momentum": lambda: keras.optimizers.SGD(0.05, momentum=0.75),
    "sgd": lambda: keras.optimizers.SGD(0.05),
    "rmsprop": lambda: keras.optimizers.RMSprop(0.01, momentum=0.5, centered=True),
    "adagrad": lambda: keras.optimizers.Adagrad(0.01),
    "adadelta": lambda: keras.optimizers.Adadelta(1.0),
    "adamax": lambda: keras.optimizers.Adamax(0.01),
    "nadam": lambda: keras.optimizers.Nadam(0.01),
    "ftrl": lambda: keras.optimizers.Ftrl(0.05),
    "lion": lambda: keras.optimizers.Lion(0.01),
    "loss_scale": lambda: keras.optimizers.LossScaleOptimizer(
        keras.optimizers.SGD(0.05, momentum=0.75), initial_scale=64.0,
        dynamic_growth_steps=3),
    "schedule_free": lambda: keras.optimizers.ScheduleFreeAdamW(0.01),
}

# The function that makes each model, and its optimizer.
TRAINED = {f"small_{name}": (small, name) for name in OPTIMIZERS}
TRAINED["functional"] = (functional, "momentum")
TRAINED["subclassed"] = (small_subclassed, "adam")
TRAINED["compiled"] = (small, "adam")
TRAINED["mobilenet_v2"] = (mobilenet, "momentum")


def counting(shape, period):
    count = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    return (count % period - period // 2) / 4


def take_steps(model, count):
    inputs = getattr(model, "inputs", None)
    x = counting((4, *inputs[0].shape[1:]) if inputs else (4, 3), 7)
    y = counting(model(x).shape, 5)
    for _ in range(count):
        model.train_on_batch(x, y)


def compiled(name):
    make, optimizer = TRAINED[name]
    model = make()
    model.compile(OPTIMIZERS[optimizer](), "mse")
    return model


def checkpoint_of(name, model):
    if name == "compiled":
        return tf.train.Checkpoint(model=model)
    return tf.train.Checkpoint(model=model, optimizer=model.optimizer)


def training():
    schedule_free.read_before_updates()
    folder = FOLDER / "keras" / "training"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name in TRAINED:
        model = compiled(name)
        model.set_weights([
            counting(weight.shape, 11) / 2 if len(weight.shape) > 1 else weight
            for weight in model.get_weights()])
        take_steps(model, STEPS_BEFORE)
        checkpoint_of(name, model).write(str(folder / name))
        if name == "mobilenet_v2":
            continue
        take_steps(model, STEPS_AFTER)
        # A checkpoint that contains only names, in the order of the weights.
        save(folder / f"{name}_later",
             {f"{i}": weight for i, weight in enumerate(model.get_weights())})


def main():
    if tf.__version__ != VERSION:
        sys.exit(f"make_checkpoints.py wants TensorFlow {VERSION}, found {tf.__version__}")
    if sys.argv[1:] == ["--training"]:
        return training()
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir()
    dtypes()
    partitioned()
    objects()
    keras_models()
    training()
    for path in sorted(FOLDER.rglob("*")):
        if path.is_file():
            print(path.relative_to(FOLDER), path.stat().st_size)


if __name__ == "__main__":
    main()
