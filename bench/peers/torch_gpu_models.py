"""The measurements of bench/gpu_model_benchmark.cc in PyTorch, on the first GPU.

Prints one line of JSON for each measurement. The batch is in the memory of the GPU from
the beginning. Images have their channels last. Modes: eager, a captured CUDA graph, and
torch.compile, which takes up to a minute for each model.
"""

import argparse
import sys
import time

import measure
import torch_graph

POSITIONS, FEATURES, HEADS, CLASSES = 512, 1024, 16, 1000


def transformer_block(torch, is_causal):
    functional = torch.nn.functional

    class Block(torch.nn.Module):

        def __init__(self):
            super().__init__()
            self.first_norm = torch.nn.LayerNorm(FEATURES, eps=1e-3)
            self.second_norm = torch.nn.LayerNorm(FEATURES, eps=1e-3)
            self.projections = torch.nn.Linear(FEATURES, 3 * FEATURES)
            self.output = torch.nn.Linear(FEATURES, FEATURES)
            self.wide = torch.nn.Linear(FEATURES, 4 * FEATURES)
            self.narrow = torch.nn.Linear(4 * FEATURES, FEATURES)
            self.classes = torch.nn.Linear(FEATURES, CLASSES)

        def forward(self, x):
            batch = x.shape[0]
            heads = self.projections(self.first_norm(x)).view(
                batch, POSITIONS, 3, HEADS, FEATURES // HEADS).permute(2, 0, 3, 1, 4)
            attended = functional.scaled_dot_product_attention(
                *heads, is_causal=is_causal)
            x = x + self.output(attended.transpose(1, 2).reshape(batch, POSITIONS, FEATURES))
            x = x + self.narrow(functional.gelu(self.wide(self.second_norm(x))))
            return self.classes(x.mean(dim=1))

    return Block()


def make_step(torch, name, precision, batch, mode):
    """Returns a function that enqueues one step and returns the loss on the GPU."""
    device = torch.device("cuda:0")
    tensor_float_32 = precision == "tensor_float_32"
    torch.backends.cuda.matmul.allow_tf32 = tensor_float_32
    torch.backends.cudnn.allow_tf32 = tensor_float_32
    torch.manual_seed(1)
    if name == "mlp":
        model = torch.nn.Sequential(torch.nn.Linear(784, 256), torch.nn.ReLU(),
                                    torch.nn.Linear(256, 256), torch.nn.ReLU(),
                                    torch.nn.Linear(256, 10)).to(device)
        x = torch.rand(batch, 784, device=device) - 0.5
    elif name in ("transformer", "causal_transformer"):
        model = transformer_block(torch, is_causal=name == "causal_transformer").to(device)
        x = torch.rand(batch, POSITIONS, FEATURES, device=device) - 0.5
    else:
        import torchvision

        model = torchvision.models.mobilenet_v2(dropout=0.0).to(
            device, memory_format=torch.channels_last)
        x = torch.rand(batch, 3, 224, 224, device=device).to(memory_format=torch.channels_last)
    y = torch.randint(0, 10, (batch,), device=device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, fused=True)
    loss_of = torch.nn.CrossEntropyLoss()

    def forward(features, labels):
        with torch.autocast("cuda", torch.bfloat16, enabled=precision == "mixed_bfloat16",
                            cache_enabled=mode != "graph"):
            return loss_of(model(features), labels)

    if mode == "compile":
        forward = torch.compile(forward)

    def train():
        optimizer.zero_grad(set_to_none=mode != "graph")
        loss = forward(x, y)
        loss.backward()
        optimizer.step()
        return loss

    if mode != "graph":
        return train
    graph, loss = torch_graph.captured(torch, train)

    def replay():
        graph.replay()
        return loss

    return replay


def measure_model(torch, name, precision, batch, mode, steps=30, warmup=10):
    step = make_step(torch, name, precision, batch, mode)
    for _ in range(warmup):
        step()
    torch.cuda.synchronize()
    samples = []
    for _ in range(steps):
        start = time.perf_counter()
        step()
        torch.cuda.synchronize()
        samples.append(1e6 * (time.perf_counter() - start))
    measure.report(f"gpu.{name}.{precision}.batch_{batch}", f"torch {torch.__version__} {mode}",
                   "us", measure.in_runs(samples), samples)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--limit_seconds", type=int, default=150)
    parser.add_argument("--modes", default="eager,graph", metavar="LIST",
                        help="of eager, graph and compile")
    parser.add_argument("models", nargs="+", metavar="MODEL:PRECISION:BATCH")
    arguments = parser.parse_args()
    measure.limit_seconds(arguments.limit_seconds)
    try:
        import torch
    except ImportError:
        print("torch is not installed", file=sys.stderr)
        return
    for mode in arguments.modes.split(","):
        for model in arguments.models:
            name, precision, batch = model.split(":")
            try:
                measure_model(torch, name, precision, int(batch), mode)
            except Exception as error:  # If one mode fails, the others still run.
                print(f"{model} {mode}: {type(error).__name__}: {error}", file=sys.stderr)


if __name__ == "__main__":
    main()
