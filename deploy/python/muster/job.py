"""The job file for the arguments of fit()."""

import dataclasses
import math
import numbers
import operator
from typing import Any, Optional

from muster.callbacks import check, flatten, job_callbacks
from muster.clusters import Local, check_counts
from muster.job_text import Word

STRATEGIES = ("default", "one_device", "mirrored", "central_storage", "multi_worker_mirrored",
              "parameter_server", "tpu")

# MultiWorkerMirrored.ShardedState of a job file.
SHARDED_STATES = ("NONE", "OPTIMIZER")

# What runs the parts of a model: programs where Muster lacks a part, no programs, or one
# program for the whole step.
BACKENDS = ("auto", "native", "program")

# Which rows of an Embedding a step updates.
EMBEDDING_UPDATES = ("auto", "rows_of_batch", "all_rows")

# The weights of the last completed epoch, which remain after an interrupted run.
LAST_EPOCH = "last_epoch.keras"


@dataclasses.dataclass
class Arguments:
    """The arguments of fit() that are not data, with the names of Keras."""

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
    data_bytes_max: Optional[int] = None
    backend: str = "auto"
    batch_hook_interval: int = 1
    cluster: Any = None
    embedding_updates: str = "auto"


@dataclasses.dataclass
class Data:
    """A data set of a job.

    Attributes:
      source: the fields of JobData that name the source.
      example_count: number of examples, without those that are skipped.
      batch_size: batch size of training data.
      skip, take: number of examples to skip at the start, and to use; None: none and all.
      can_be_shuffled: True if `shuffle` applies.
      inputs: (shape of an example, dtype) of each input of the model; empty if not known.
      labels: the same of the labels of each output.
      is_used_once_per_pass: True if a pass through the data uses each example once also with
        parameter servers, as for all data that fit() does not get as the path of a file.
    """

    source: dict
    example_count: int
    batch_size: Optional[int] = None
    skip: Optional[int] = None
    take: Optional[int] = None
    can_be_shuffled: bool = False
    inputs: list = dataclasses.field(default_factory=list)
    labels: list = dataclasses.field(default_factory=list)
    is_used_once_per_pass: bool = False

    def fields(self):
        return {**self.source, "skip": self.skip, "take": self.take}


def _with_sharded_state(name, fields):
    """Returns the fields of a strategy with sharded_state as the name of an enum value."""
    if not isinstance(fields, dict) or fields.get("sharded_state") is None:
        return fields
    state = fields["sharded_state"]
    if name != "multi_worker_mirrored":
        raise ValueError(f"sharded_state={state!r} is of the strategy multi_worker_mirrored; got "
                         f"the strategy {name}")
    if state not in SHARDED_STATES:
        raise ValueError(f"sharded_state is {state!r}; expected one of "
                         f"{', '.join(SHARDED_STATES)}")
    return {**fields, "sharded_state": Word(state)}


def strategy_fields(arguments):
    """Returns the strategy of the job, or None if the cluster determines it.

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
    return {name: _with_sharded_state(name, strategy[name])}


def integer(name, value, least):
    if isinstance(value, bool) or not hasattr(value, "__index__") or operator.index(value) < least:
        raise ValueError(f"{name}={value!r}; expected an integer of at least {least}")
    return operator.index(value)


def _class_weights(weights):
    """Returns class_weight with integers as keys, because Keras looks up classes by int."""
    if not hasattr(weights, "items"):
        raise ValueError(f"class_weight is {weights!r}; expected a dict of class numbers and "
                         "weights")
    found = {}
    for key, value in weights.items():
        if not isinstance(key, numbers.Real) or key != int(key):
            raise ValueError(f"class_weight has the key {key!r}; expected class numbers")
        weight = float(value)
        if key < 0 or not 0 <= weight < math.inf:
            raise ValueError(f"class_weight has {key!r}: {value!r}; expected classes from 0, and "
                             "weights that are finite and not negative")
        found[int(key)] = weight
    return found


def _validation_freq(value):
    if isinstance(value, (list, tuple)):
        return [integer("validation_freq", epoch, 1) for epoch in value]
    return integer("validation_freq", value, 1)


def _with_cluster(arguments):
    """Returns the arguments with a cluster that has their numbers of processes."""
    cluster = arguments.cluster
    if cluster is None:
        return dataclasses.replace(arguments, cluster=Local(arguments.workers, arguments.ps))
    if not hasattr(cluster, "start") or isinstance(cluster, type):
        raise ValueError(f"cluster is {cluster!r}; expected for example "
                         "muster.Slurm(workers=2, ps=1)")
    check_counts(cluster)
    if arguments.workers or arguments.ps:
        raise ValueError(f"workers={arguments.workers} and ps={arguments.ps} are those of the "
                         "cluster; pass them to its class")
    return dataclasses.replace(arguments, workers=cluster.workers, ps=cluster.ps)


def normalized(arguments):
    """Returns the arguments in the form that the rest of the package expects.

    Raises:
      ValueError: an argument is not supported with any data; names it.
    """
    arguments = _with_cluster(arguments)
    strategy_fields(arguments)
    if arguments.backend not in BACKENDS:
        raise ValueError(f"backend is {arguments.backend!r}; expected one of "
                         f"{', '.join(BACKENDS)}")
    if arguments.embedding_updates not in EMBEDDING_UPDATES:
        raise ValueError(f"embedding_updates is {arguments.embedding_updates!r}; expected one of "
                         f"{', '.join(EMBEDDING_UPDATES)}")
    changes = {
        "epochs": integer("epochs", arguments.epochs, 0),
        "initial_epoch": integer("initial_epoch", arguments.initial_epoch, 0),
        "validation_freq": _validation_freq(arguments.validation_freq),
        "callbacks": flatten(arguments.callbacks),
        "class_weight": _class_weights(arguments.class_weight or {}),
    }
    changes["batch_hook_interval"] = integer("batch_hook_interval",
                                              arguments.batch_hook_interval, 1)
    for name in ("batch_size", "steps_per_epoch", "validation_steps", "validation_batch_size"):
        value = getattr(arguments, name)  # 0 means None, as in Keras.
        changes[name] = integer(name, value, 1) if value else None
    split = arguments.validation_split or 0.0
    if not isinstance(split, numbers.Real) and not hasattr(split, "__float__"):
        raise ValueError(f"validation_split={split!r}; expected a number")
    if not 0 <= split < 1:
        raise ValueError(f"validation_split={split!r}; expected at least 0 and below 1")
    changes["validation_split"] = split
    if arguments.shuffle not in (True, False):
        raise ValueError(f"shuffle={arguments.shuffle!r} is not supported; expected True or False")
    changes["shuffle"] = bool(arguments.shuffle)
    check(changes["callbacks"])
    return dataclasses.replace(arguments, **changes)


def reader_count(arguments):
    """Returns the number of processes that read the training data."""
    return 1 if arguments.ps > 0 else max(1, arguments.workers)


def _replica_count(arguments):
    """Returns how many replicas divide a batch."""
    if arguments.ps > 0:
        return 1
    strategy = strategy_fields(arguments) or {}
    devices = next(iter(strategy.values()), {}).get("devices", [])
    return max(1, arguments.workers) * max(1, len(devices))


def batch_sizes(arguments, batch_size, example_count):
    """Returns the numbers of examples that steps can have, in falling order.

    Those are the batch size, the rest of an epoch, of the whole data or of a worker's part
    of it, and the parts of both that replicas get.
    """
    steps = {min(batch_size, example_count)}
    for part_count in {1, max(1, arguments.workers)}:
        for part in (example_count // part_count, -(-example_count // part_count)):
            steps.add(part % batch_size)
    replicas = _replica_count(arguments)
    sizes = set()
    for size in steps:
        larger = -(-size // replicas)
        sizes.update({size // replicas, larger, size - larger * (replicas - 1)})
    return sorted((size for size in sizes if size > 0), reverse=True)


def _strategy_for(arguments, train):
    strategy = strategy_fields(arguments)
    if arguments.ps == 0 or not train.is_used_once_per_pass:
        return strategy
    fields = (strategy or {}).get("parameter_server", {})
    return {"parameter_server": {"dispatch_batches": True, **fields}}


def job_fields(arguments, train, validation=None):
    """Returns the fields of the job file.

    Args:
      arguments: Arguments, as normalized() returned them.
      train, validation: Data.
    """
    frequency = arguments.validation_freq
    if frequency == []:
        validation = None
    callbacks = job_callbacks(arguments.callbacks, arguments.batch_hook_interval)
    keep = {"model_checkpoint": {"filepath": "${run_dir}/" + LAST_EPOCH}}
    is_shuffled = train.can_be_shuffled and arguments.shuffle
    return {
        "model": {"keras": "${job_dir}/model.keras"},
        "train": {
            **train.fields(),
            "shuffle": {"buffer": max(1, train.example_count)} if is_shuffled else None,
        },
        "validation": validation.fields() if validation is not None else None,
        "batch_size": train.batch_size,
        "epochs": arguments.epochs,
        "initial_epoch": arguments.initial_epoch or None,
        "steps_per_epoch": arguments.steps_per_epoch,
        "validation_freq": None if frequency == 1 else frequency,
        "class_weight": [{"key": key, "value": value}
                         for key, value in arguments.class_weight.items()],
        "strategy": _strategy_for(arguments, train),
        # Each worker uses a part of the rows of each batch.
        "input": {"auto_shard_policy": "DATA"} if reader_count(arguments) > 1 else None,
        "callbacks": callbacks + [keep],
        "seed": arguments.seed,
        # Training continues, as in Keras.
        "fail_on_non_finite": False,
    }


def step_count(arguments, train):
    """Returns the number of steps per epoch."""
    return arguments.steps_per_epoch or -(-train.example_count // train.batch_size)
