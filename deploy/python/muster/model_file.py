"""The model files that the cluster reads and writes."""

import contextlib
import os
import warnings

from muster.job import batch_sizes
from muster.saved_model import complete_configs


def prepare_model(model, x):
    """Builds the model as Keras' fit() would.

    Raises:
      ValueError: the model cannot be trained in a cluster; says why.
    """
    kind = type(model)
    if kind.__module__.split(".")[0] != "keras":
        raise ValueError(f"the model is a {kind.__name__}, whose Python code cannot run in the "
                         "cluster; expected a Sequential or functional model of Keras")
    if not getattr(model, "compiled", False):
        raise ValueError("the model is not compiled; call model.compile() first")
    if not model.built:
        if not hasattr(x, "shape"):
            raise ValueError("the model is not built; begin it with keras.Input, or call "
                             "model.build()")
        model.build((None,) + tuple(x.shape[1:]))
    if not model.optimizer.built:
        model.optimizer.build(model.trainable_variables)


def save_model(model, path):
    """Writes a model with the complete state of its losses, metrics, optimizer and layers.

    Raises:
      ValueError: the file cannot represent a part of the state; names it.
    """
    with complete_configs(model):
        model.save(path)


def save_with_programs(model, path, arguments, train, validation):
    """Writes a model with programs in place of the parts that Muster does not know.

    Args:
      arguments: job.Arguments.
      train, validation: job.Data; validation may be None.

    Returns:
      A copy of the model: loading weights into it changes the model.

    Raises:
      ValueError: as save_model(); or a part cannot be exported.
    """
    from muster.programs import converted

    train_sizes = batch_sizes(arguments, train.batch_size, train.example_count)
    inference_sizes = []
    if validation is not None:
        size = arguments.validation_batch_size or train.batch_size
        inference_sizes = batch_sizes(arguments, size, validation.example_count)
    with converted(model, train_sizes, inference_sizes or train_sizes, train.labels) as copy:
        save_model(copy, path)
    return copy


@contextlib.contextmanager
def _adapted_layers_stay(model):
    """Within the context, layers that were adapted to data load no variables.

    Training does not change these layers, and Muster writes their state into their
    configs instead of their variables.
    """
    layers = [layer for layer in model._flatten_layers() if hasattr(layer, "adapt")]
    for layer in layers:
        vars(layer)["load_own_variables"] = lambda store: None
    try:
        yield
    finally:
        for layer in layers:
            vars(layer).pop("load_own_variables", None)


def load_weights(model, path):
    """Loads the weights and the optimizer's state in a file of Muster into `model`.

    Raises:
      ValueError: the file does not match the model.
      OSError: the file cannot be read.
    """
    if not os.path.exists(path):
        raise FileNotFoundError(f"there is no {path}")
    with _adapted_layers_stay(model), warnings.catch_warnings():
        # If the optimizer's state does not match, Keras only warns.
        warnings.filterwarnings("error", message="Skipping variable loading")
        model.load_weights(path)
