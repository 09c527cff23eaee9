"""Trains models of Keras on a Muster cluster. docs/python.md is the tutorial."""

from muster.api import fit, write_job
from muster.errors import MusterError

__all__ = ["MusterError", "fit", "write_job"]
