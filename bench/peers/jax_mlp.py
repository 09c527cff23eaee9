"""Steps of an MLP under JAX, compiled as one program. Takes turns: see turns.py."""

import argparse
import functools

import jax
import jax.numpy as jnp
import numpy as np
import turns

WIDTHS = (784, 256, 256, 10)
RATE = 0.01


def loss_of(weights, x, labels):
    for index, (kernel, bias) in enumerate(weights):
        x = x @ kernel + bias
        if index + 1 < len(weights):
            x = jax.nn.relu(x)
    return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(x), labels[:, None], axis=1))


@functools.partial(jax.jit, donate_argnums=0)
def step(weights, x, labels):
    loss, gradients = jax.value_and_grad(loss_of)(weights, x, labels)
    return loss, jax.tree.map(lambda w, g: w - RATE * g, weights, gradients)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--steps", type=int, default=50)
    arguments = parser.parse_args()
    random = np.random.default_rng(1)
    weights = [(jnp.asarray(random.uniform(-0.05, 0.05, (rows, columns)).astype("float32")),
                jnp.zeros(columns)) for rows, columns in zip(WIDTHS, WIDTHS[1:])]
    x = np.full((arguments.batch, WIDTHS[0]), 0.1, "float32")
    labels = np.full(arguments.batch, 3, "int32")

    def run():
        nonlocal weights
        for _ in range(arguments.steps):
            loss, weights = step(weights, x, labels)
            float(loss)

    turns.take_turns(run)


if __name__ == "__main__":
    main()
