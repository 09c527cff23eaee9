"""The job file that stands for the arguments of fit()."""

import dataclasses
from typing import Any, Optional

from muster.callbacks import translate

STRATEGIES = ("default", "one_device", "mirrored", "central_storage", "multi_worker_mirrored",
              "parameter_server")

# The weights of the last epoch that is complete, which outlive an interrupted run.
LAST_EPOCH = "last_epoch.keras"


@dataclasses.dataclass
class Arguments:
    """The arguments of fit() that are not data; the names are those of Keras."""

    batch_size: Optional[int] = None
    epochs: int = 1
    verbose: Any = "auto"
    callbacks: Any = None
    validation_split: float = 0.0
    shuffle: bool = True
    class_weight: Any = None
    initial_epoch: int = 0
    steps_per_epoch: Optional[int] = None
    validation_steps: Optional[int] = None
    validation_batch_size: Optional[int] = None
    validation_freq: Any = 1
    strategy: Any = None
    workers: int = 0
    ps: int = 0
    seed: Optional[int] = None


@dataclasses.dataclass
class Data:
    """A data set of a job.

    Attributes:
      source: the fields of JobData that name the source.
      example_count: None if it is not known.
      batch_size: of data that came in batches; None where the caller decides.
    """

    source: dict
    example_count: Optional[int] = None
    batch_size: Optional[int] = None


def strategy_fields(arguments):
    """Returns the strategy of the job, or None where the cluster decides.

    Raises:
      ValueError: there is no such strategy, or it needs another cluster.
    """
    workers, ps = arguments.workers, arguments.ps
    if workers < 0 or ps < 0:
        raise ValueError(f"workers={workers} and ps={ps} must be at least 0")
    if ps > 0 and workers == 0:
        raise ValueError(f"ps={ps} needs workers; expected workers=1 at least")
    strategy = arguments.strategy
    if strategy is None:
        return None
    if isinstance(strategy, str):
        strategy = {strategy: {}}
    if not isinstance(strategy, dict) or len(strategy) != 1:
        raise ValueError(f"strategy is {strategy!r}; expected a name, or a dict of one name and "
                         "its fields")
    name = next(iter(strategy))
    if name not in STRATEGIES:
        raise ValueError(f"strategy is {name!r}; expected one of {', '.join(STRATEGIES)}")
    if name == "parameter_server" and ps == 0:
        raise ValueError("strategy parameter_server needs workers and parameter servers; got "
                         f"workers={workers} and ps={ps}")
    if name == "multi_worker_mirrored" and ps > 0:
        raise ValueError(f"strategy multi_worker_mirrored has no parameter servers; got ps={ps}")
    if name not in ("parameter_server", "multi_worker_mirrored") and (workers or ps):
        raise ValueError(f"strategy {name} is of one process; got workers={workers} and "
                         f"ps={ps}, expected 0 of both")
    return strategy


def check(arguments):
    """Finds mistakes before data is written.

    Raises:
      ValueError: an argument is not supported, whatever the data; names it.
    """
    strategy_fields(arguments)
    for callback in arguments.callbacks or []:
        translate(callback)


def _check_validation(arguments, validation):
    if arguments.validation_split and validation is not None:
        raise ValueError("got both validation_split and validation_data; expected one of them")
    if arguments.validation_steps is not None and validation is None:
        raise ValueError("validation_steps needs validation_data")


def batch_size_of(arguments, train, validation):
    """Returns the batch size of the job, which training and validation share.

    Raises:
      ValueError: they do not, or the batch size is given twice.
    """
    if train.batch_size is not None and arguments.batch_size is not None:
        raise ValueError("batch_size cannot be given for data that comes in batches")
    counts_steps = arguments.steps_per_epoch is not None or arguments.validation_steps is not None
    if counts_steps and train.batch_size is None and arguments.batch_size is None:
        # Keras would derive one size for training and another for validation.
        raise ValueError("steps_per_epoch and validation_steps need batch_size")
    batch_size = train.batch_size or arguments.batch_size or 32
    other = validation.batch_size if validation is not None else None
    other = other or arguments.validation_batch_size or batch_size
    if other != batch_size:
        raise ValueError(f"validation has batches of {other} examples and training of "
                         f"{batch_size}; Muster supports one size for both")
    return batch_size


def _shuffle_fields(arguments, train):
    # Data that comes in batches has the order that its owner gave it, as in Keras.
    if train.batch_size is not None or not arguments.shuffle:
        return None
    if arguments.shuffle is not True:
        raise ValueError(f"shuffle={arguments.shuffle!r} is not supported; expected True or False")
    return {"buffer": max(1, train.example_count)}


def job_fields(arguments, train, validation=None):
    """Returns the fields of the job file.

    Args:
      arguments: Arguments.
      train, validation: Data.

    Raises:
      ValueError: an argument is not supported; names it.
    """
    _check_validation(arguments, validation)
    frequency = arguments.validation_freq
    callbacks = [translate(callback) for callback in arguments.callbacks or []]
    keep = {"model_checkpoint": {"filepath": "${run_dir}/" + LAST_EPOCH}}
    weights = arguments.class_weight or {}
    return {
        "model": {"keras": "${job_dir}/model.keras"},
        "train": {
            **train.source,
            "shuffle": _shuffle_fields(arguments, train),
            "repeat": True if arguments.steps_per_epoch is not None else None,
        },
        "validation": validation.source if validation is not None else None,
        "validation_split": arguments.validation_split or None,
        "batch_size": batch_size_of(arguments, train, validation),
        "epochs": arguments.epochs,
        "initial_epoch": arguments.initial_epoch or None,
        "steps_per_epoch": arguments.steps_per_epoch,
        "validation_steps": arguments.validation_steps,
        "validation_freq": None if frequency == 1 else frequency,
        "class_weight": [{"key": key, "value": float(value)} for key, value in weights.items()],
        "strategy": strategy_fields(arguments),
        "callbacks": callbacks + [keep],
        "seed": arguments.seed,
        # As Keras, which continues.
        "fail_on_non_finite": False,
    }


def step_count(arguments, train, batch_size):
    """Returns the steps of an epoch; None if they are not known."""
    if arguments.steps_per_epoch is not None:
        return arguments.steps_per_epoch
    if train.example_count is None:
        return None
    count = train.example_count
    if arguments.validation_split:
        count = int(count * (1 - arguments.validation_split))
    return -(-count // batch_size)
