"""Records a layer for job_layers.py: its configuration and its numbers."""

import json

import keras
import tensorflow as tf

from cases.golden_format import case, normal

L = keras.layers


def config_of(job, layer):
    text = json.dumps(keras.saving.serialize_keras_object(layer))
    config = json.loads(text)
    # Keras numbers names across the process.
    config["config"]["name"] = "layer"
    dtype = config["config"].get("dtype")
    if isinstance(dtype, str):
        # Some layers write the name of the policy instead of the policy.
        policy = keras.saving.serialize_keras_object(keras.DTypePolicy(dtype))
        config["config"]["dtype"] = policy
    return {"job": job, "keras": config}


def _numbered(name, values):
    """Returns {name: value}, or {name0: value0, ...} if there are several values."""
    if len(values) == 1:
        return {name: values[0]}
    return {f"{name}{i}": value for i, value in enumerate(values)}


def _listed(value):
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _key(variable):
    """Returns the name of a weight within its layer: "kernel", "forward_lstm/lstm_cell/bias"."""
    return variable.path.partition("/")[2]


# Layers that are called in training mode.
TRAINED = (L.BatchNormalization, L.TimeDistributed, L.SpectralNormalization,
           L.RandomContrast.__mro__[1])  # Augmentation.


def run(name, job, layer, x, rng, mask=None, has_gradients=True):
    """Runs a layer and returns its case. `x` is the input, or a list of inputs."""
    config = config_of(job, layer)
    # The layer takes its inputs as separate arguments.
    is_unlisted = isinstance(layer, L.GroupQueryAttention)
    if is_unlisted:
        layer.build(*[v.shape for v in x])
    else:
        layer.build([v.shape for v in x] if isinstance(x, list) else x.shape)
    weights = {}
    for variable in layer.weights:
        weights[_key(variable)] = normal(rng, *variable.shape)
        variable.assign(weights[_key(variable)])
    inputs = _numbered("x", _listed(x))
    sources = {key: tf.constant(value) for key, value in inputs.items()}
    if mask is not None:
        inputs["x1"] = mask.numpy()
        inputs["x0"] = inputs.pop("x")
        sources = {"x0": sources["x"]}
    with tf.GradientTape() as tape:
        tape.watch(sources)
        arguments = {} if mask is None else {"mask": mask}
        passed = list(sources.values()) if isinstance(x, list) else sources[min(sources)]
        if isinstance(layer, TRAINED):
            arguments["training"] = True
        outputs = _listed(layer(*passed) if is_unlisted else layer(passed, **arguments))
        cotangents = [normal(rng, *y.shape) for y in outputs]
        total = sum(tf.reduce_sum(y * c) for y, c in zip(outputs, cotangents))
    sources |= {_key(v): v.value for v in layer.trainable_variables}
    gradients = tape.gradient(total, sources) if has_gradients else {}
    return case(
        name,
        config,
        {**inputs, **weights, **_numbered("cotangent", cotangents)},
        {
            **_numbered("y", [y.numpy() for y in outputs]),
            **{f"grad_{key}": g.numpy() for key, g in gradients.items()},
        },
    )
