"""sequence_layers.json: recurrent layers and attention, forward and backward.

inputs:  x, or x0, x1, ... in the order of the layer's inputs (masks are bool); the
         weights by the last part of their Keras paths; cotangent, or cotangent0, ...,
         in the shape of each output.
outputs: y, or y0, y1, ...; grad_<name> of inputs and weights, for the sum over the outputs
         of y * cotangent.
"""

import keras
import numpy as np
import tensorflow as tf

from cases.golden_format import case, normal, seeded


def cases():
    yield from _recurrent(seeded(420))
    yield from _attention(seeded(421))


def _recurrent(rng):
    options = (
        ("default", {}, {}),
        ("sequences", {"return_sequences": True}, {}),
        ("state", {"return_sequences": True, "return_state": True}, {}),
        ("backwards", {"go_backwards": True, "return_sequences": True}, {}),
        ("initial", {"return_state": True}, {"initial": True}),
        ("masked", {}, {"masked": True}),
        (
            "masked_sequences",
            {"return_sequences": True, "return_state": True, "go_backwards": True},
            {"masked": True},
        ),
        ("no_bias", {"use_bias": False}, {}),
    )
    for kind in (keras.layers.SimpleRNN, keras.layers.LSTM, keras.layers.GRU):
        own = list(options)
        if kind is not keras.layers.SimpleRNN:
            own.append(("hard", {"activation": "relu", "recurrent_activation": "hard_sigmoid"}, {}))
        if kind is keras.layers.GRU:
            own.append(("reset_before", {"reset_after": False}, {}))
            own.append(("reset_before_no_bias", {"reset_after": False, "use_bias": False}, {}))
        for name, arguments, calls in own:
            layer = kind(3, **arguments)
            layer.build((2, 4, 2))
            inputs = [normal(rng, 2, 4, 2)]
            call = {}
            if calls.get("initial"):
                states = [normal(rng, 2, 3) for _ in range(2 if "LSTM" in str(kind) else 1)]
                inputs += states
                call["initial_state"] = states
            if calls.get("masked"):
                mask = np.array([[1, 0, 1, 0], [0, 1, 1, 1]], dtype=bool)
                inputs.append(mask)
                call["mask"] = mask
            yield _run(
                f"{kind.__name__}.{name}",
                {"class_name": kind.__name__, "units": 3, **arguments},
                layer,
                inputs,
                lambda x, layer=layer, call=call: layer(
                    x[0],
                    **(
                        {"initial_state": x[1:]}
                        if "initial_state" in call
                        else {"mask": tf.constant(call["mask"])}
                        if "mask" in call
                        else {}
                    ),
                ),
                rng,
            )


def _attention(rng):
    for name, arguments, call in (
        ("default", {}, {}),
        ("no_bias", {"use_bias": False}, {}),
        ("value_dim", {"value_dim": 4, "output_shape": 3}, {}),
        ("key", {}, {"key": True}),
        ("mask", {}, {"mask": True}),
        ("causal", {}, {"causal": True}),
        ("causal_mask_scores", {}, {"causal": True, "mask": True, "scores": True}),
    ):
        layer = keras.layers.MultiHeadAttention(2, 3, **arguments)
        inputs = [normal(rng, 2, 3, 5), normal(rng, 2, 4, 4)]
        if call.get("key"):
            inputs.append(normal(rng, 2, 4, 2))
        layer.build(inputs[0].shape, inputs[1].shape, inputs[-1].shape)
        options = {}
        if call.get("mask"):
            mask = rng.random((2, 3, 4)) < 0.6
            mask[:, :, 0] = True
            inputs.append(mask)
            options["attention_mask"] = tf.constant(mask)
        if call.get("causal"):
            options["use_causal_mask"] = True
        if call.get("scores"):
            options["return_attention_scores"] = True
        yield _run(
            f"MultiHeadAttention.{name}",
            {"class_name": "MultiHeadAttention", **arguments, **call},
            layer,
            inputs,
            lambda x, layer=layer, options=options, key=call.get("key"): layer(
                x[0], x[1], key=x[2] if key else None, **options
            ),
            rng,
        )


def _run(name, config, layer, inputs, call, rng):
    weights = {}
    for weight in layer.weights:
        # The path after the name of the layer.
        path = weight.path.partition("/")[2]
        weights[path] = normal(rng, *weight.shape)
        weight.assign(weights[path])
    tensors = [tf.constant(x) for x in inputs]
    numbers = [t for t in tensors if t.dtype.is_floating]
    with tf.GradientTape() as tape:
        tape.watch(numbers)
        outputs = call(numbers)
        outputs = list(outputs) if isinstance(outputs, (list, tuple)) else [outputs]
        cotangents = [normal(rng, *y.shape) for y in outputs]
        total = sum(tf.reduce_sum(y * c) for y, c in zip(outputs, cotangents))
    sources = {f"x{i}": t for i, t in enumerate(numbers)}
    sources |= dict(zip(weights, [w.value for w in layer.weights]))
    gradients = tape.gradient(total, sources, unconnected_gradients="zero")
    return case(
        name,
        config,
        {
            **{f"x{i}": x for i, x in enumerate(inputs)},
            **weights,
            **{f"cotangent{i}": c for i, c in enumerate(cotangents)},
        },
        {
            **{f"y{i}": y.numpy() for i, y in enumerate(outputs)},
            **{f"grad_{k}": tf.convert_to_tensor(g).numpy() for k, g in gradients.items()},
        },
    )
