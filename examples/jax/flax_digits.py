"""Trains a model of Flax on the handwritten digits of examples/data/digits, with two workers and
two parameter servers. Needs flax, optax, and Muster's executables.

    python3 examples/jax/flax_digits.py [EPOCHS]
"""

import os
import sys

os.environ["KERAS_BACKEND"] = "jax"

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax

import muster

DIGITS = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "data/digits")


class Classifier(nn.Module):
    @nn.compact
    def __call__(self, x):
        x = nn.relu(nn.Dense(128)(x))
        x = nn.LayerNorm()(x + nn.Dense(128)(nn.relu(nn.Dense(64)(x))))
        return nn.Dense(10)(x)


def digits(name):
    rows = np.loadtxt(os.path.join(DIGITS, name), delimiter=",", skiprows=1, dtype="float32")
    return {"pixels": rows[:, :-1] / 16, "label": rows[:, -1].astype("int32")}


model = Classifier()
train, test = digits("train.csv"), digits("test.csv")


def loss_fn(params, batch):
    log_odds = nn.log_softmax(model.apply(params, batch["pixels"]))
    right = jnp.argmax(log_odds, axis=-1) == batch["label"]
    loss = -jnp.mean(jnp.take_along_axis(log_odds, batch["label"][:, None], axis=1))
    return loss, {"accuracy": jnp.mean(right)}


params = model.init(jax.random.key(0), train["pixels"][:1])
params, history = muster.train(loss_fn, params, train, optax.adamw(1e-3), has_aux=True, workers=2,
                               ps=2, epochs=int(sys.argv[1]) if len(sys.argv) > 1 else 10)
print(f"accuracy on the test digits: {loss_fn(params, test)[1]['accuracy']:.3f}")
