"""legacy_files.json and ../legacy_files/*.h5: models that Keras 2 and Keras 3 saved as HDF5.

Keras 2 is the package tf_keras 2.21.0. NAME.h5 is the model; NAME_weights.h5 has its
weights alone, as model.save_weights() of Keras 2 writes them.

config:  "keras", the version.
inputs:  x_<i>, a batch.
outputs: prediction_<i>.
"""

import pathlib

import h5py
import keras
import numpy as np
from keras.src.legacy.saving import legacy_h5_format

from cases.golden_format import case, normal, seeded

FOLDER = pathlib.Path(__file__).parent.parent / "legacy_files"
BATCH = 3


def images(k, rng):
    """A functional model that contains another model, a shared layer and a frozen one."""
    layers = k.layers
    inner = k.Sequential([
        layers.Conv2D(3, 2, activation="relu", input_shape=(5, 5, 2)),
        layers.BatchNormalization(), layers.DepthwiseConv2D(2, use_bias=False),
    ], name="features")
    inner.trainable = False
    a = k.Input((5, 5, 2), name="a")
    b = k.Input((5, 5, 2), name="b")
    pool = layers.GlobalAveragePooling2D()
    shared = layers.Dense(4, activation="tanh", kernel_regularizer="l2")
    x = layers.Concatenate()([shared(pool(inner(a))), shared(pool(inner(b)))])
    x = layers.BatchNormalization()(x)
    return (k.Model([a, b], layers.Dense(2, activation="softmax", name="classes")(x)),
            [normal(rng, BATCH, 5, 5, 2), normal(rng, BATCH, 5, 5, 2)])


def sequence(k, rng):
    layers = k.layers
    model = k.Sequential([
        k.Input((5,), dtype="int32"), layers.Embedding(9, 4, mask_zero=True),
        layers.LSTM(3, return_sequences=True),
        layers.Bidirectional(layers.GRU(2, return_sequences=True)),
        layers.SimpleRNN(2), layers.Dense(2)])
    ids = rng.integers(1, 9, size=(BATCH, 5)).astype(np.int32)
    ids[:, 3:] = 0
    return model, [ids]


def attention(k, rng):
    layers = k.layers
    x = k.Input((4, 6))
    y = layers.MultiHeadAttention(2, 3)(x, x)
    y = layers.LayerNormalization()(layers.Add()([x, y]))
    _, h, c = layers.LSTM(3, return_state=True)(y)
    y = layers.LSTM(3)(y, initial_state=[h, c])
    return k.Model(x, layers.Dense(2)(y)), [normal(rng, BATCH, 4, 6)]


def cases():
    import tf_keras  # Not in every environment.

    assert tf_keras.__version__ == "2.21.0"
    FOLDER.mkdir(exist_ok=True)
    number = 960
    for version, k in ((2, tf_keras), (3, keras)):
        for make in (images, sequence, attention):
            number += 1
            k.backend.clear_session()
            k.utils.set_random_seed(number)
            yield _recorded(f"{make.__name__}_{version}", version, *make(k, seeded(number)))


def _recorded(name, version, model, x):
    for weight in model.weights:
        # Makes moving averages and biases differ from their initial values.
        weight.assign(weight + np.float32(0.01) * len(weight.shape))
    model.compile("sgd", "mse")
    model.save(FOLDER / f"{name}.h5")
    if version == 2:
        model.save_weights(FOLDER / f"{name}_weights.h5")
    else:
        with h5py.File(FOLDER / f"{name}_weights.h5", "w") as file:
            legacy_h5_format.save_weights_to_hdf5_group(file, model)
    predictions = model.predict(x if len(x) > 1 else x[0], verbose=0)
    inputs = {f"x_{i}": value for i, value in enumerate(x)}
    return case(name, {"keras": version}, inputs, {"prediction_0": np.asarray(predictions)})
