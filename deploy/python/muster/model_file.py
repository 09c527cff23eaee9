"""The model files that the cluster reads and writes."""

import contextlib
import os
import warnings

import keras
from muster.programs import functional_of, inner_optimizer, unknown_parts
from muster.saved_model import complete_configs


_UNSUPPORTED_POLICIES = ("bfloat16", "float16", "float64")


def check_model(model):
    """Raises ValueError unless the model can be trained."""
    if not isinstance(model, keras.Model):
        raise ValueError(f"the model is a {type(model).__name__}; expected a model of Keras")
    if not getattr(model, "compiled", False):
        raise ValueError("the model is not compiled; call model.compile() first")
    for layer in model._flatten_layers(include_self=False):
        policy = getattr(layer.dtype_policy, "name", "")
        if policy in _UNSUPPORTED_POLICIES and layer.variables:
            raise ValueError(f"layer {layer.name} has the dtype policy {policy}; expected float32, "
                             "mixed_bfloat16 or mixed_float16")
    rate = getattr(inner_optimizer(model.optimizer), "_learning_rate", None)
    is_schedule = isinstance(rate, keras.optimizers.schedules.LearningRateSchedule)
    if callable(rate) and not is_schedule and not hasattr(rate, "assign"):
        name = getattr(rate, "__name__", type(rate).__name__)
        raise ValueError(f"the learning rate {name} is a function without the step, which cannot "
                         "run in the cluster; expected a number, a LearningRateSchedule, or a "
                         "callback LearningRateScheduler")


def build_layers(model, x):
    """Builds a Sequential or functional model as Keras' fit() would.

    Raises:
      ValueError: the model cannot be built from `x`.
    """
    if not model.built:
        if not hasattr(x, "shape"):
            raise ValueError("the model is not built; begin it with keras.Input, or call "
                             "model.build()")
        model.build((None,) + tuple(x.shape[1:]))
    if not model.optimizer.built:
        if unknown_parts(model) and not all(layer.built for layer in model._flatten_layers()):
            functional = functional_of(model)
            keras.src.backend.compute_output_spec(functional, functional._inputs_struct)
        model.optimizer.build(model.trainable_variables)


def _keeps_other_rows(optimizer):
    """Returns True if a gradient of 0 changes neither a variable nor its slots."""
    optimizer = inner_optimizer(optimizer)
    if optimizer.weight_decay or optimizer.use_ema:
        return False
    return (type(optimizer) is keras.optimizers.Adagrad
            or type(optimizer) is keras.optimizers.SGD and not optimizer.momentum)


def updates_all_rows(arguments, model):
    """Returns whether a step updates all rows of an Embedding (embedding_updates of fit())."""
    if arguments.embedding_updates == "auto":
        return arguments.ps == 0 and not _keeps_other_rows(model.optimizer)
    return arguments.embedding_updates == "all_rows"


def save_model(model, path, updates_all_rows=False):
    """Writes a model with the complete state of its losses, metrics, optimizer and layers.

    Args:
      updates_all_rows: as for complete_configs().

    Raises:
      ValueError: the file cannot represent a part of the state; names it.
    """
    with complete_configs(model, updates_all_rows):
        model.save(path)


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


class SavedModel:
    """A model that save_model() has written."""

    def __init__(self, model):
        self._model = model

    def load(self, path):
        """As load_weights()."""
        load_weights(self._model, path)

    def save_weights(self, path, source):
        """Writes the weights of the model for the cluster.

        Args:
          path: ends in .weights.h5.
          source: a file of the cluster that was loaded; unused, because the cluster has the
            layout of Keras.
        """
        del source
        self._model.save_weights(path, overwrite=True)

    def rewrite(self, path):
        """Does nothing: the cluster writes the files of this model as Keras does."""


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
