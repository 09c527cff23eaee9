"""Trains models of Keras and JAX on a Muster cluster. docs/python.md is the tutorial."""

from muster.api import attach, export, fit, load_weights, write_job
from muster.clusters import Local, Ray, Slurm
from muster.errors import MusterError
from muster.kubernetes_cluster import Kubernetes

__version__ = "0.1.0"

__all__ = ["Kubernetes", "Local", "MusterError", "Optax", "Ray", "Slurm", "__version__", "attach",
           "export", "fit", "load_weights", "train", "write_job"]


def __getattr__(name):
    # Imported here because they need Keras, and Optax needs JAX.
    if name == "train":
        from muster.jax_training import train

        return train
    if name == "Optax":
        from muster.optax_optimizer import Optax

        return Optax
    raise AttributeError(f"module muster has no attribute {name}")
