"""Cases of ops.json: branches and loops.

config: "op", the name under tf, and options of the call.
"""

import numpy as np
import tensorflow as tf

from cases.golden_format import case, normal, seeded


def cases():
    rng = seeded(612)
    for predicate in (True, False):
        yield _call(
            "cond",
            str(predicate).lower(),
            lambda predicate, x, y: tf.cond(predicate, lambda: x * y, lambda: tf.tanh(x)),
            {"predicate": np.bool_(predicate), "x": normal(rng, 2, 3), "y": normal(rng, 2, 3)},
        )
    for reverse in (False, True):
        yield _call(
            "scan",
            "reverse" if reverse else "forward",
            lambda elems, initializer, w, reverse=reverse: tf.scan(
                lambda carry, x: tf.tanh(carry @ w + x), elems, initializer, reverse=reverse
            ),
            {
                "elems": normal(rng, 5, 2, 3),
                "initializer": normal(rng, 2, 3),
                "w": normal(rng, 3, 3),
            },
            reverse=reverse,
        )
    for limit in (3, 10):
        yield _call(
            "while_loop",
            f"limit_{limit}",
            lambda w, x, limit=limit: tf.while_loop(
                lambda i, x: i < 5,
                lambda i, x: (i + 1, tf.sin(x * w)),
                (np.int32(0), x),
                maximum_iterations=limit,
            )[1],
            {"w": normal(rng, 3), "x": normal(rng, 2, 3)},
            maximum_iterations=limit,
        )


def _call(operator, name, function, inputs, **attributes):
    output = function(**{key: tf.constant(value) for key, value in inputs.items()})
    return case(
        f"{operator}.{name}",
        {"op": operator, **attributes},
        {key: np.asarray(value) for key, value in inputs.items()},
        {"output": output.numpy()},
    )
