"""Records random models: what Keras saves, predicts and learns.

A case, in the format of make_golden.py:

config:  seed; trains: true; is_synchronous, has_servers: false if, according to docs/keras.md,
         several replicas, or parameter servers, do not train this model as one process does;
         reason: why.
inputs:  x_<i>, y_<i> and w_<i> (sample weights of output i, if any) of all steps, one
         batch after another.
outputs: prediction_<i> of the saved model for the first batch; log_<name>, one for each
         step; weight_<i> after the steps.

A model is drawn again if rounding decides its result. To measure that, Keras takes the steps a
second time, with weights that differ by a relative 1e-7. If the results then differ by more than
AMPLIFIED_MAX, they cannot be compared with another implementation. This happens if a gradient is 0
except for rounding, such as that of a bias before a normalization, and the optimizer divides by its
size.
"""

import json
import pathlib
import re
import sys
import zipfile

import keras
import numpy as np
import tensorflow as tf
from keras import tree

from cases.golden_format import case
from random_models import draw as drawing
from random_models import inputs, models

STEPS = 3
NUDGE = 1e-7
AMPLIFIED_MAX = 3e-6
VALUE_MAX = 1e3
# From this attempt on, optimizers are robust.
ROBUST_FROM = 2
ATTEMPTS_MAX = 12


def single(values):
    return values if len(values) > 1 else values[0]


def batch(arrays, index):
    return [one[index * inputs.BATCH:(index + 1) * inputs.BATCH] for one in arrays]


def _fed(array):
    return tf.constant(array.tolist() if array.dtype == object else array)


def predict(model, x):
    got = model.predict_on_batch(single([_fed(one) for one in x]))
    return [np.asarray(one) for one in (got if isinstance(got, (list, tuple)) else [got])]


def _weights_for(model, weights):
    """Keras broadcasts weights of examples, [batch], along the last axis of losses [batch, time]:
    it refuses them or, if both extents are equal, weights time steps."""
    return [one[:, None] if len(output.shape) > 2 else one
            for one, output in zip(weights, model.outputs)]


def take_step(model, x, y, weights):
    """Takes a step. Returns the logs of this batch alone."""
    model.reset_metrics()
    return model.train_on_batch(
        single([_fed(one) for one in x]), single(y),
        sample_weight=single(_weights_for(model, weights)) if weights else None,
        return_dict=True)


def weights_of(model):
    """Returns the weights that Muster has, too, each once, in the order of the layers."""
    found = {}

    def visit(layer):
        if isinstance(layer, keras.Model):
            for inner in layer.layers:
                visit(inner)
        elif not isinstance(layer, keras.layers.Normalization):
            for weight in layer.weights:
                if "seed" not in weight.path:
                    found.setdefault(id(weight), weight)
    visit(model)
    return list(found.values())


def load(path):
    model = keras.models.load_model(path)
    model.run_eagerly = True
    return model


def train(model, made, begin, end):
    """Takes steps [begin, end). Returns the logs, followed by the weights."""
    logs = {}
    for index in range(begin, end):
        step_logs = take_step(model, batch(made.x, index), batch(made.y, index),
                              batch(made.weights, index))
        for name, value in step_logs.items():
            logs.setdefault(name, []).append(np.float32(value))
    outputs = {f"log_{name}": np.array(values, np.float32) for name, values in logs.items()}
    for i, weight in enumerate(weights_of(model)):
        outputs[f"weight_{i}"] = np.asarray(weight)
    return outputs


def _is_stable(path, made, expected):
    if any(not np.isfinite(value).all() or np.abs(value).max(initial=0) > VALUE_MAX
           for value in expected.values()):
        return False
    nudged = load(path)
    rng = np.random.default_rng(1)
    for weight in weights_of(nudged):
        value = np.asarray(weight)
        nudge = rng.choice([-1, 1], size=value.shape) * NUDGE * (np.abs(value) + 0.1)
        weight.assign((value + nudge).astype(value.dtype))
    got = train(nudged, made, 0, STEPS)
    return all(
        np.abs(got[name] - value).max(initial=0)
        <= AMPLIFIED_MAX * max(1, np.abs(value).max(initial=0))
        for name, value in expected.items() if name in got)


def _counts_unevenly(made):
    """True if the loss is a mean over something other than examples."""
    losses = made.model._compile_loss._user_loss
    return made.has_masks or any(
        getattr(one, "ignore_class", None) is not None for one in tree.flatten(losses))


def _limits(made):
    """Returns the limits of strategies in docs/keras.md that apply to this model."""
    model = made.model
    is_synchronous, has_servers, reasons = True, True, []
    for layer in model._flatten_layers():
        if isinstance(layer, keras.layers.BatchNormalization) and not layer.synchronized:
            is_synchronous = False
            reasons.append("each replica has its own batch statistics")
        is_activity = isinstance(layer, keras.layers.ActivityRegularization)
        if is_activity and _counts_unevenly(made):
            is_synchronous = False
            reasons.append("penalties of activity are weighted like the loss")
    optimizer = model.optimizer
    optimizer = getattr(optimizer, "inner_optimizer", optimizer)
    kinds = keras.optimizers
    if isinstance(optimizer, (kinds.Lamb, kinds.Adafactor, kinds.Muon)):
        has_servers = False
        reasons.append("the optimizer needs whole variables")
    clips = optimizer.clipnorm or optimizer.clipvalue or optimizer.global_clipnorm
    if optimizer.gradient_accumulation_steps and clips:
        has_servers = False
        reasons.append("workers clip gradients before they are accumulated")
    return {"is_synchronous": is_synchronous, "has_servers": has_servers,
            "reason": "; ".join(dict.fromkeys(reasons))}


def _make_small(path):
    """Compresses a Keras file, and removes times and addresses from it."""
    with zipfile.ZipFile(path) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    metadata = json.loads(files["metadata.json"])
    files["metadata.json"] = json.dumps(metadata | {"date_saved": "2026-01-01@00:00:00"})
    config = files["config.json"].decode()
    addresses = list(dict.fromkeys(re.findall(r'"shared_object_id": (\d+)', config)))
    for i, address in enumerate(addresses):
        config = config.replace(f'"shared_object_id": {address}', f'"shared_object_id": {i + 1}')
    files["config.json"] = config
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)


def _attempt(seed, attempt, path):
    """Draws a model. Returns its configuration and data, and the results of Keras."""
    keras.backend.clear_session()
    keras.utils.set_random_seed(1000 * seed + attempt)
    draw = drawing.Draw(seed, attempt)
    made = models.make(draw, STEPS, attempt >= ROBUST_FROM)
    made.model.run_eagerly = True
    for _ in range(draw.integer(0, 2)):
        take_step(made.model, batch(made.x, 0), batch(made.y, 0), batch(made.weights, 0))
    made.model.save(path)
    _make_small(path)
    outputs = {f"prediction_{i}": value
               for i, value in enumerate(predict(made.model, batch(made.x, 0)))}
    outputs |= train(made.model, made, 0, STEPS)
    return made, outputs


def record(seed, folder):
    """Saves the model of this seed to folder/random_<seed>.keras. Returns its case."""
    name = f"random_{seed:03}"
    path = pathlib.Path(folder) / f"{name}.keras"
    for attempt in range(ATTEMPTS_MAX):
        try:
            made, outputs = _attempt(seed, attempt, path)
            if not _is_stable(path, made, outputs):
                continue
        except (ValueError, tf.errors.OpError) as error:
            # Keras has drawn a model that it cannot run, such as one with layers whose shapes
            # differ from the declared ones.
            print(f"{name}, attempt {attempt}: {str(error)[:300]}", file=sys.stderr)
            continue
        arrays = {f"x_{i}": value for i, value in enumerate(made.x)}
        arrays |= {f"y_{i}": value for i, value in enumerate(made.y)}
        arrays |= {f"w_{i}": value for i, value in enumerate(made.weights)}
        config = {"seed": seed, "trains": True, **_limits(made)}
        return case(name, config, arrays, outputs)
    raise RuntimeError(f"no model of seed {seed} is stable")
