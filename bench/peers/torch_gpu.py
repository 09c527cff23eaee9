"""The measurements of bench/gpu_benchmark.cc in PyTorch and in JAX, on the first GPU.

Prints one line of JSON for each measurement. Skips packages that are not installed, and
names them on stderr.
"""

import argparse
import importlib.util
import sys
import time

import measure
import torch_graph

BATCH = 64
WIDTHS = (784, 256, 256, 10)
VARIABLES = 25
ELEMENTS = 1 << 20
MATRIX = 4096
REPETITIONS = 30


def micros_of(synchronize, work, count=REPETITIONS, warmup=5):
    """Returns the times of `work` until the device is done, in microseconds."""
    samples = []
    for repetition in range(count + warmup):
        synchronize()
        start = time.perf_counter()
        work()
        synchronize()
        if repetition >= warmup:
            samples.append(1e6 * (time.perf_counter() - start))
    return samples


def report(bench, peer, unit, samples):
    measure.report(bench, peer, unit, measure.in_runs(samples), samples)


def measure_torch():
    import torch

    peer = f"torch {torch.__version__}"
    device = torch.device("cuda:0")
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.manual_seed(1)

    source = torch.empty(64 << 20, device=device)
    target = torch.empty_like(source)
    copies = micros_of(torch.cuda.synchronize,
                       lambda: [target.copy_(source) for _ in range(10)])
    report("gpu.copy.device_to_device", peer, "GB/s",
           [10 * 2 * source.nbytes / micros / 1e3 for micros in copies])
    del source, target

    variables = [torch.zeros(ELEMENTS, device=device, requires_grad=True)
                 for _ in range(VARIABLES)]
    for variable in variables:
        variable.grad = torch.zeros_like(variable)
    adam = torch.optim.Adam(variables, fused=True)
    updates = micros_of(torch.cuda.synchronize, lambda: [adam.step() for _ in range(5)])
    report("gpu.adam.100_mib.time", peer, "us", [micros / 5 for micros in updates])
    del variables, adam

    for name in ("float32", "bfloat16"):
        x = torch.rand(MATRIX, MATRIX, device=device).to(getattr(torch, name))
        products = micros_of(torch.cuda.synchronize, lambda: [x @ x for _ in range(16)], 10)
        report(f"gpu.matmul.{name}", peer, "TFLOP/s",
               [16 * 2 * MATRIX ** 3 / micros / 1e6 for micros in products])
    _measure_launches(torch, device, peer)

    for optimizer_name in ("sgd", "adam"):
        suffix = "" if optimizer_name == "sgd" else ".adam"
        for mode in ("eager", "compile", "graph"):
            step = _torch_step(torch, device, optimizer_name, mode)
            report(f"gpu.mlp_step{suffix}", f"{peer} {mode}", "us",
                   micros_of(torch.cuda.synchronize, step, 10 * REPETITIONS, 20))


def _measure_launches(torch, device, peer):
    """Measures chains of an op on tiny tensors, as in gpu_benchmark.cc."""
    x = torch.zeros(4, 4, device=device)
    length = 1000
    for name, op in (("matmul", lambda y: y @ x), ("softmax", lambda y: torch.softmax(y, -1))):
        def chain():
            y = x
            for _ in range(length):
                y = op(y)
            return y

        eager = micros_of(torch.cuda.synchronize, chain)
        report(f"gpu.launch.{name}", f"{peer} eager", "us", [micros / length for micros in eager])
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            chain()
        replayed = micros_of(torch.cuda.synchronize, graph.replay)
        report(f"gpu.launch.{name}.graphs", f"{peer} graph", "us",
               [micros / length for micros in replayed])


def _torch_step(torch, device, optimizer_name, mode):
    """Returns a function that runs one step and reads the loss, as Muster does."""
    layers = []
    for inputs, outputs in zip(WIDTHS, WIDTHS[1:]):
        layers += [torch.nn.Linear(inputs, outputs), torch.nn.ReLU()]
    model = torch.nn.Sequential(*layers[:-1]).to(device)
    options = {"capturable": True} if optimizer_name == "adam" else {}
    kind = torch.optim.Adam if optimizer_name == "adam" else torch.optim.SGD
    optimizer = kind(model.parameters(), lr=0.01, fused=True, **options)
    loss_of = torch.nn.CrossEntropyLoss()
    x = torch.full((BATCH, WIDTHS[0]), 0.5)
    y = torch.zeros(BATCH, dtype=torch.int64)
    x_device, y_device = x.to(device), y.to(device)

    def forward(features, labels):
        return loss_of(model(features), labels)

    if mode == "compile":
        forward = torch.compile(forward)

    def train():
        optimizer.zero_grad(set_to_none=mode != "graph")
        loss = forward(x_device, y_device)
        loss.backward()
        optimizer.step()
        return loss

    if mode == "graph":
        graph, loss = torch_graph.captured(torch, train)

        def replay():
            x_device.copy_(x)
            y_device.copy_(y)
            graph.replay()
            return loss.item()

        return replay

    def step():
        x_device.copy_(x)
        y_device.copy_(y)
        return train().item()

    return step


def measure_jax():
    import jax
    import jax.numpy as jnp

    device = jax.devices("gpu")[0]
    peer = f"jax {jax.__version__} on {device.device_kind}"
    keys = jax.random.split(jax.random.PRNGKey(1), len(WIDTHS))
    weights = [(jax.random.normal(key, (i, o)) * 0.05, jnp.zeros(o))
               for key, i, o in zip(keys, WIDTHS, WIDTHS[1:])]

    def loss_of(weights, x, y):
        for position, (kernel, bias) in enumerate(weights):
            x = x @ kernel + bias
            if position + 1 < len(weights):
                x = jax.nn.relu(x)
        return -jnp.take_along_axis(jax.nn.log_softmax(x), y[:, None], axis=1).mean()

    @jax.jit
    def train(weights, x, y):
        loss, gradients = jax.value_and_grad(loss_of)(weights, x, y)
        return loss, jax.tree.map(lambda w, g: w - 0.01 * g, weights, gradients)

    import numpy

    x = numpy.full((BATCH, WIDTHS[0]), 0.5, numpy.float32)
    y = numpy.zeros(BATCH, numpy.int32)

    def step():
        nonlocal weights
        loss, weights = train(weights, x, y)
        return float(loss)

    report("gpu.mlp_step", peer, "us",
           micros_of(lambda: None, step, 10 * REPETITIONS, 20))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--limit_seconds", type=int, default=150)
    measure.limit_seconds(parser.parse_args().limit_seconds)
    for name, run in (("torch", measure_torch), ("jax", measure_jax)):
        if importlib.util.find_spec(name) is None:
            print(f"{name} is not installed", file=sys.stderr)
            continue
        try:
            run()
        except Exception as error:  # If one peer fails, the others still run.
            print(f"{name}: {type(error).__name__}: {error}", file=sys.stderr)


if __name__ == "__main__":
    main()
