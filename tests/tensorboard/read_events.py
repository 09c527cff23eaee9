"""Reads the events that write_events has written with TensorBoard's own reader.

Exits with 0, or with an error at the first difference.
"""

import json
import pathlib
import sys

import numpy as np
from tensorboard.backend.event_processing import event_accumulator
from tensorboard.plugins.graph import keras_util
from tensorboard.util import tensor_util

FOLDER = pathlib.Path(sys.argv[1])


def load(run):
    accumulator = event_accumulator.EventAccumulator(
        str(FOLDER / run), size_guidance={event_accumulator.TENSORS: 0})
    accumulator.Reload()
    return accumulator


def expect(what, actual, wanted):
    assert actual == wanted, f"{what}: {actual} is not {wanted}"
    print(f"  {what}")


def values(accumulator, tag):
    return [(e.step, tensor_util.make_ndarray(e.tensor_proto))
            for e in accumulator.Tensors(tag)]


def plugin_of(accumulator, tag):
    return accumulator.SummaryMetadata(tag).plugin_data.plugin_name


def check_training(model, weights, nodes):
    train, validation = load(f"{model}/train"), load(f"{model}/validation")
    expect(f"{model}: tags of training", set(train.Tags()["tensors"]), {
        "keras", "epoch_loss", "epoch_mean_absolute_error", "epoch_learning_rate",
        "epoch_steps_per_second", "batch_loss", "batch_mean_absolute_error",
        "batch_steps_per_second",
        *(f"{w}/histogram" for w in weights),
        # The last weight is a single number, which Keras does not show as an image.
        *(f"{w}/image" for w in weights[:-1])})
    expect(f"{model}: tags of validation", set(validation.Tags()["tensors"]), {
        "epoch_loss", "epoch_mean_absolute_error",
        "evaluation_loss_vs_iterations",
        "evaluation_mean_absolute_error_vs_iterations"})
    expect("epochs", [step for step, _ in values(train, "epoch_loss")], [0, 1, 2])
    expect("batches", [step for step, _ in values(train, "batch_loss")],
           list(range(1, 13)))
    expect("iterations", [step for step, _ in
                          values(validation, "evaluation_loss_vs_iterations")],
           [4, 8, 12])
    expect("learning rate", [float(v) for _, v in values(train, "epoch_learning_rate")],
           [0.25] * 3)
    losses = [float(v) for _, v in values(validation, "epoch_loss")]
    assert losses == sorted(losses, reverse=True) and losses[-1] >= 0, losses

    tag = f"{weights[0]}/histogram"
    expect("plugin of histograms", plugin_of(train, tag), "histograms")
    for _, histogram in values(train, tag):
        assert histogram.shape == (30, 3) and histogram.dtype == np.float64
        assert (histogram[1:, 0] == histogram[:-1, 1]).all(), "gaps between buckets"
    tag = f"{weights[0]}/image"
    expect("plugin of images", plugin_of(train, tag), "images")
    width, height, png = values(train, tag)[0][1][:3]
    assert png.startswith(b"\x89PNG") and int(width) > 0 and int(height) > 0

    expect("plugin of the model", plugin_of(train, "keras"), "graph_keras_model")
    text = values(train, "keras")[0][1].item()
    graph = keras_util.keras_model_to_graph_def(json.loads(text))
    expect("nodes that TensorBoard draws",
           {n.name.split("/")[-1]: sorted(i.split("/")[-1] for i in n.input)
            for n in graph.node}, nodes)


check_training("sequential",
               ["dense/kernel", "dense/bias", "dense_1/kernel", "dense_1/bias"],
               {"dense": [], "dense_1": ["dense"]})
check_training("functional", ["shared/kernel", "shared/bias", "y/kernel", "y/bias"],
               {"x": [], "shared": ["shared", "x"], "y": ["shared"]})
text = load("text")
expect("plugin of text", plugin_of(text, "note"), "text")
expect("text", values(text, "note"), [(3, np.array(b"# A *run*", dtype=object))])
