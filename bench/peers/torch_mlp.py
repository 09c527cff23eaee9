"""The step of a 784-256-256-10 network in PyTorch: batch 64, SGD or Adam.

With --ranks 2 the same step under DistributedDataParallel over gloo, 64 examples per
rank. A process measures one setting, because PyTorch's thread pools do not shrink.
"""

import argparse
import datetime
import os
import socket

import measure
import torch
from torch import nn

BATCH = 64
STEPS = 1000
WARMUP = 200


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=1, help="of each rank")
    parser.add_argument("--ranks", type=int, default=1)
    parser.add_argument("--optimizer", choices=["sgd", "adam"], default="sgd")
    parser.add_argument("--limit_seconds", type=int, default=120)
    arguments = parser.parse_args()
    measure.limit_seconds(arguments.limit_seconds)
    if arguments.ranks == 1:
        _measure(
            f"mlp_step.threads_{arguments.threads}{_suffix(arguments.optimizer)}",
            arguments.threads,
            arguments.optimizer,
            lambda model: model,
        )
    else:
        torch.multiprocessing.spawn(
            _rank,
            args=(arguments.ranks, arguments.threads, arguments.optimizer, _free_port()),
            nprocs=arguments.ranks,
        )


def _suffix(optimizer):
    return "" if optimizer == "sgd" else f".{optimizer}"


def _rank(rank, rank_count, threads, optimizer, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch.distributed.init_process_group(
        "gloo", rank=rank, world_size=rank_count, timeout=datetime.timedelta(seconds=60)
    )
    name = f"mlp_step.ddp_gloo.ranks_{rank_count}{_suffix(optimizer)}" if rank == 0 else None
    _measure(name, threads, optimizer, _distributed)
    torch.distributed.destroy_process_group()


def _distributed(model):
    # The fastest options: one bucket, which stores the gradients.
    return nn.parallel.DistributedDataParallel(
        model, gradient_as_bucket_view=True, static_graph=True
    )


def _measure(name, threads, optimizer_name, wrap):
    """Measures the step of wrap(model), and reports it if it has a name."""
    torch.set_num_threads(threads)
    torch.manual_seed(1)
    model = wrap(
        nn.Sequential(
            nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10)
        )
    )
    if optimizer_name == "sgd":
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01, fused=True)
    else:
        optimizer = torch.optim.Adam(model.parameters(), fused=True)
    loss = nn.CrossEntropyLoss()
    x = torch.rand(BATCH, 784)
    y = torch.randint(10, (BATCH,))

    def step():
        optimizer.zero_grad(set_to_none=True)
        value = loss(model(x), y)
        value.backward()
        optimizer.step()
        return value.item()

    samples = [1e3 * s for s in measure.seconds_of(step, count=STEPS, warmup=WARMUP)]
    if name:
        peer = f"torch {torch.__version__}"
        measure.report(name, peer, "ms", measure.in_runs(samples), samples)


def _free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


if __name__ == "__main__":
    main()
