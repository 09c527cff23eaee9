"""Trains models of Keras and JAX on a Muster cluster. docs/python.md is the tutorial."""

import importlib

from muster.api import attach, export, fit, load_weights, write_job
from muster.clusters import Local, Ray, Slurm
from muster.errors import MusterError
from muster.kubernetes_cluster import Kubernetes

__version__ = "0.1.0"

__all__ = ["Kubernetes", "Local", "MusterError", "Optax", "Ray", "Slurm", "__version__", "attach",
           "export", "fit", "load_params", "load_weights", "save_weights", "train", "write_job"]

# What is in modules that are imported later, because they need NumPy, Keras or JAX.
_LATER = {"Optax": "optax_optimizer", "train": "jax_training", "load_params": "weights",
          "save_weights": "weights"}


def __getattr__(name):
    if name not in _LATER:
        raise AttributeError(f"module muster has no attribute {name}")
    return getattr(importlib.import_module(f"muster.{_LATER[name]}"), name)
