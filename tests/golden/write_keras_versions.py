"""Writes version_files/ and data/keras_version_<version>.json with one version of Keras.

It was run once with each version of Keras that is tested, in a Python environment with that
version:

    python3 -m venv venv && venv/bin/pip install tensorflow-cpu==2.13.1
    venv/bin/python write_keras_versions.py

`write_keras_versions.py tf_keras` uses the package tf_keras. A model that trains has taken two
steps when it is saved as NAME_<version>.keras; then it takes three more. One version also writes
NAME_<version>.h5.

config:  "files", those with the model; "trains", whether it takes steps.
inputs:  x_<i>, and y_<i> if it trains: the batch of every step.
outputs: prediction_<i> of the saved model; weight_<i> after the three steps.
"""

import os

os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""

import importlib
import pathlib
import sys
import zipfile

import numpy as np

from cases.golden_format import case, file_text, normal, seeded

HERE = pathlib.Path(__file__).parent
FOLDER = HERE / "version_files"
BATCH = 4
STEPS = 3


def sequence(k, rng):
    """Cells with hard_sigmoid, and arguments of recurrent layers and embeddings."""
    layers = k.layers
    two = k.__version__.startswith("2.")
    table = layers.Embedding(7, 3, input_length=5) if two else layers.Embedding(7, 3)
    model = k.Sequential([
        k.Input((5,), dtype="int32"), table, layers.SpatialDropout1D(0.25),
        layers.GaussianNoise(0.1),
        layers.LSTM(3, recurrent_activation="hard_sigmoid", return_sequences=True),
        layers.GRU(2, recurrent_activation="hard_sigmoid", reset_after=False,
                   return_sequences=True),
        layers.Bidirectional(layers.SimpleRNN(2, return_sequences=True)),
        layers.TimeDistributed(layers.Dense(2, activation="hard_sigmoid")),
        layers.Flatten(), layers.Dense(2, activation="gelu")])
    return model, [rng.integers(0, 7, size=(BATCH, 5)).astype(np.int32)], None


def images(k, rng):
    layers = k.layers
    two = k.__version__.startswith("2.")
    slope = {"alpha" if two else "negative_slope": 0.25}
    above = layers.ThresholdedReLU(0.5) if two else layers.ReLU(threshold=0.5)
    model = k.Sequential([
        k.Input((6, 6, 2)), layers.RandomFlip("horizontal", seed=3),
        layers.RandomRotation(0.1), layers.RandomZoom(0.1), layers.RandomTranslation(0.1, 0.1),
        layers.RandomContrast(0.1),
        layers.Conv2D(3, 2, activation="leaky_relu" if not two else "swish"),
        layers.LeakyReLU(**slope),
        layers.SeparableConv2D(3, 2, depth_multiplier=2), layers.BatchNormalization(),
        layers.DepthwiseConv2D(2, use_bias=False), above, layers.ELU(0.5),
        layers.Conv2DTranspose(2, 2), layers.UpSampling2D(2, interpolation="bilinear"),
        layers.PReLU(shared_axes=[1, 2]), layers.MaxPooling2D(2),
        layers.LayerNormalization(), layers.ZeroPadding2D(1), layers.Cropping2D(1),
        layers.SpatialDropout2D(0.1), layers.GlobalAveragePooling2D(),
        layers.Dense(2, kernel_initializer="orthogonal", kernel_constraint="max_norm")])
    return model, [normal(rng, BATCH, 6, 6, 2)], None


def inferred(k, rng):
    """A model whose shapes are inferred from its first batch."""
    model = k.Sequential([k.layers.Dense(3, activation="hard_sigmoid"), k.layers.Dense(2)])
    x = normal(rng, BATCH, 4)
    model(x)
    return model, [x], None


def branches(k, rng):
    """Two outputs, an inner model and a shared layer; arguments of compile()."""
    layers = k.layers
    a, b = k.Input((4,), name="a"), k.Input((4,), name="b")
    inner = k.Sequential([k.Input((4,)), layers.Dense(3, activation="tanh")], name="inner")
    shared = layers.Dense(3, activation="relu")
    x = layers.Concatenate()([shared(a), shared(b), inner(a)])
    x = layers.BatchNormalization()(x)
    model = k.Model([a, b], [layers.Dense(2, name="first")(x),
                             layers.Dense(1, name="second")(layers.Add()([inner(b), inner(a)]))])
    model.compile("adam", ["mse", k.losses.Huber(0.5)], loss_weights=[1.0, 0.5])
    return (model, [normal(rng, BATCH, 4), normal(rng, BATCH, 4)],
            [normal(rng, BATCH, 2), normal(rng, BATCH, 1)])


def with_optimizer(make):
    def dense(k, rng):
        model = k.Sequential([k.Input((4,)), k.layers.Dense(3, activation="elu"),
                              k.layers.Dense(2)])
        model.compile(make(k), k.losses.MeanSquaredError())
        return model, [normal(rng, BATCH, 4)], [normal(rng, BATCH, 2)]

    return dense


MODELS = {
    "sequence": sequence, "images": images, "inferred": inferred, "branches": branches,
    "sgd": with_optimizer(lambda k: k.optimizers.SGD(0.1)),
    "momentum": with_optimizer(lambda k: k.optimizers.SGD(0.1, momentum=0.9, nesterov=True)),
    "rmsprop": with_optimizer(
        lambda k: k.optimizers.RMSprop(0.01, momentum=0.5, centered=True)),
    "adamw": with_optimizer(lambda k: k.optimizers.AdamW(
        k.optimizers.schedules.ExponentialDecay(0.01, 3, 0.5), weight_decay=0.01,
        amsgrad=True)),
    "nadam": with_optimizer(lambda k: k.optimizers.Nadam(0.01)),
}


def saved(k, name, model):
    """Saves the model in the formats that the version has. Returns the names of the files."""
    version = k.__version__
    # One version is enough: the HDF5 files of Keras 2 differ only in their configs.
    has_hdf5 = version.startswith("2.13") and name in ("sequence", "images", "inferred")
    files = []
    for suffix in ("keras", "h5") if has_hdf5 else ("keras",):
        file = FOLDER / f"{name}_{version}.{suffix}"
        model.save(file)
        # Before 2.13, the suffix .keras meant HDF5.
        if zipfile.is_zipfile(file):
            compress(file)
        files.append(file.name)
    return files


def compress(file):
    with zipfile.ZipFile(file) as archive:
        members = [(member, archive.read(member)) for member in archive.infolist()]
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for member, content in members:
            archive.writestr(zipfile.ZipInfo(member.filename), content,
                             compress_type=zipfile.ZIP_DEFLATED)


def recorded(k, number, name, make):
    k.backend.clear_session()
    k.utils.set_random_seed(number)
    model, x, y = make(k, seeded(number))
    given = x if len(x) > 1 else x[0]
    labels = y if y is None or len(y) > 1 else y[0]
    for weight in model.weights if y is None else []:
        # Makes moving averages and biases differ from their initial values.
        if "seed" not in weight.name:
            weight.assign(weight + np.float32(0.01) * len(weight.shape))
    for _ in range(2 if y is not None else 0):
        model.train_on_batch(given, labels)
    predictions = model.predict(given, verbose=0)
    predictions = predictions if isinstance(predictions, list) else [predictions]
    files = saved(k, name, model)
    for _ in range(STEPS if y is not None else 0):
        model.train_on_batch(given, labels)
    outputs = {f"prediction_{i}": np.asarray(value) for i, value in enumerate(predictions)}
    if y is not None:
        outputs.update({f"weight_{i}": value for i, value in enumerate(model.get_weights())})
    inputs = {f"x_{i}": value for i, value in enumerate(x)}
    inputs.update({f"y_{i}": value for i, value in enumerate(y or [])})
    # Keras 3 rounds gradients that are 0 differently (those of biases before a normalization), and
    # Adam turns them into steps.
    trains = y is not None and not (name == "branches" and k.__version__ >= "3")
    return case(name, {"files": files, "trains": trains}, inputs, outputs)


def main():
    k = importlib.import_module(sys.argv[1] if len(sys.argv) > 1 else "keras")
    FOLDER.mkdir(exist_ok=True)
    cases = [recorded(k, 1200 + number, name, make)
             for number, (name, make) in enumerate(MODELS.items())
             # HDF5 files are read without the settings of compile().
             if number < 3 or not k.__version__.startswith("2.12")
             # In a graph, Keras 2 computes the product of momentums only once.
             if not (name == "nadam" and k.__version__ < "3")]
    file = HERE / "data" / f"keras_version_{k.__version__}.json"
    file.write_text(file_text(cases))
    print(k.__version__, [one["name"] for one in cases])


if __name__ == "__main__":
    main()
