"""Trains a model of Equinox on the handwritten digits of examples/data/digits, with two workers in
sync. Needs equinox, and Muster's executables.

    python3 examples/jax/equinox_digits.py [EPOCHS]
"""

import os
import sys

os.environ["KERAS_BACKEND"] = "jax"

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import muster

DIGITS = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "data/digits")


def digits(name):
    rows = np.loadtxt(os.path.join(DIGITS, name), delimiter=",", skiprows=1, dtype="float32")
    return {"pixels": rows[:, :-1] / 16, "label": rows[:, -1].astype("int32")}


train, test = digits("train.csv"), digits("test.csv")
# Arrays are trained. The rest of the model, such as its activations, stays as it is.
arrays, rest = eqx.partition(eqx.nn.MLP(64, 10, width_size=128, depth=2, key=jax.random.key(0)),
                             eqx.is_array)


def loss_fn(arrays, batch):
    log_odds = jax.nn.log_softmax(jax.vmap(eqx.combine(arrays, rest))(batch["pixels"]))
    right = jnp.argmax(log_odds, axis=-1) == batch["label"]
    loss = -jnp.mean(jnp.take_along_axis(log_odds, batch["label"][:, None], axis=1))
    return loss, {"accuracy": jnp.mean(right)}


arrays, history = muster.train(loss_fn, arrays, train, "adam", has_aux=True, workers=2,
                               epochs=int(sys.argv[1]) if len(sys.argv) > 1 else 10)
print(f"accuracy on the test digits: {loss_fn(arrays, test)[1]['accuracy']:.3f}")
