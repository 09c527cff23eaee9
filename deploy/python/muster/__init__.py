"""Trains models of Keras on a Muster cluster. docs/python.md is the tutorial."""

from muster.api import fit, write_job
from muster.errors import MusterError

__version__ = "0.1.0"

__all__ = ["MusterError", "__version__", "fit", "write_job"]
