"""Cases of ops.json: layer normalization, over the last two axes.

config: "op", Muster's name, and its attributes. TensorFlow has no such op: the gradients are those
of equivalent operations.
"""

import tensorflow as tf

from cases.golden_format import case, normal, seeded, uniform


def cases():
    """The operands of LayerNormGrad are gradient, x, scale, mean and inverse."""
    rng = seeded(613)
    x, scale, offset = normal(rng, 3, 2, 4), uniform(rng, 2, 4, low=0.5), normal(rng, 2, 4)
    gradient = normal(rng, *x.shape)
    operands = [tf.constant(operand) for operand in (x, scale, offset)]
    with tf.GradientTape() as tape:
        tape.watch(operands)
        mean, variance = tf.nn.moments(operands[0], [1, 2], keepdims=True)
        inverse = tf.math.rsqrt(variance + 0.01)
        y = (operands[0] - mean) * inverse * operands[1] + operands[2]
    results = [one.numpy() for one in tape.gradient(y, operands, output_gradients=gradient)]
    mean, inverse = (one.numpy().reshape(3) for one in (mean, inverse))
    yield case(
        "LayerNorm",
        {"op": "LayerNorm", "epsilon": 0.01},
        {"0_x": x, "1_scale": scale, "2_offset": offset},
        {"0_y": y.numpy(), "1_mean": mean, "2_inverse": inverse},
    )
    yield case(
        "LayerNormGrad",
        {"op": "LayerNormGrad", "epsilon": 0.01},
        {"0_gradient": gradient, "1_x": x, "2_scale": scale, "3_mean": mean,
         "4_inverse": inverse},
        {"0_x": results[0], "1_scale": results[1], "2_offset": results[2]},
    )  # fmt: skip
