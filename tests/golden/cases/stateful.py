"""stateful.json and ../stateful_files/*.keras: models that carry states across batches.

Each model is saved as NAME.keras before its first batch. It then takes three steps of
training, evaluates two batches, predicts two batches, resets its states and predicts the
two batches again: nothing but the reset changes states to zeros.

inputs:  x, of three batches; y, the labels.
outputs: loss_<i> of step i; evaluation, the loss of the first two batches; prediction and
         prediction_after_reset of the first two batches; weight_<i> in the end.
"""

import pathlib

import keras
import numpy as np
from keras import layers, optimizers

from cases.golden_format import case, normal, seeded

FOLDER = pathlib.Path(__file__).parent.parent / "stateful_files"
BATCH = 4
BATCHES = 3


def stack(*inner, shape):
    return keras.Sequential([keras.Input(batch_shape=(BATCH, *shape)), *inner])


def recurrent():
    return stack(
        layers.LSTM(3, return_sequences=True, stateful=True),
        layers.SimpleRNN(4, return_sequences=True),
        layers.GRU(3, return_sequences=True, stateful=True, go_backwards=True),
        layers.SimpleRNN(3, stateful=True),
        layers.Dense(2), shape=(5, 3))


def any_length():
    return stack(layers.GRU(3, stateful=True), layers.Dense(2), shape=(None, 3))


def bidirectional():
    return stack(layers.Bidirectional(layers.LSTM(2, stateful=True)), layers.Dense(2),
                 shape=(5, 3))


def convolutional():
    return stack(layers.ConvLSTM1D(2, 2, stateful=True), layers.Flatten(), layers.Dense(2),
                 shape=(3, 4, 3))


def nested():
    """A functional model that contains a stateful model."""
    inner = keras.Sequential([keras.Input(batch_shape=(BATCH, 5, 3)),
                              layers.LSTM(3, stateful=True)], name="inner")
    x = keras.Input(batch_shape=(BATCH, 5, 3))
    side = layers.RNN(layers.GRUCell(3), stateful=True)(x)
    return keras.Model(x, layers.Dense(2)(layers.Add()([inner(x), side])))


MODELS = (recurrent, any_length, bidirectional, convolutional, nested)


def cases():
    FOLDER.mkdir(exist_ok=True)
    for number, make in enumerate(MODELS):
        keras.backend.clear_session()
        keras.utils.set_random_seed(940 + number)
        yield _recorded(make.__name__, make(), seeded(940 + number))


def _batch(array, number):
    return array[number * BATCH:(number + 1) * BATCH]


def _reset(made):
    for layer in made.layers:
        if isinstance(layer, keras.Model):
            _reset(layer)
        elif getattr(layer, "stateful", False):
            layer.reset_states()


def _recorded(name, made, rng):
    made.compile(optimizers.SGD(0.1, momentum=0.9), "mse")
    made.save(FOLDER / f"{name}.keras")
    shape = [extent or 5 for extent in made.input_shape[1:]]
    x = normal(rng, BATCHES * BATCH, *shape)
    y = normal(rng, BATCHES * BATCH, 2)
    outputs = {}
    for i in range(BATCHES):
        loss = made.train_on_batch(_batch(x, i), _batch(y, i))
        outputs[f"loss_{i}"] = np.float32(loss)
        made.reset_metrics()
    two = slice(0, 2 * BATCH)
    outputs["evaluation"] = np.float32(
        made.evaluate(x[two], y[two], batch_size=BATCH, verbose=0))
    outputs["prediction"] = made.predict(x[two], batch_size=BATCH, verbose=0)
    _reset(made)
    outputs["prediction_after_reset"] = made.predict(x[two], batch_size=BATCH, verbose=0)
    for i, weight in enumerate(made.weights):
        outputs[f"weight_{i}"] = np.asarray(weight)
    return case(name, {}, {"x": x, "y": y}, outputs)
