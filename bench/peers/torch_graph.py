"""Captures a training step of PyTorch as a CUDA graph."""


def captured(torch, train, warmup=5):
    """Captures `train` as a graph. Returns the graph, and the loss that it writes."""
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(warmup):
            train()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        loss = train()
    return graph, loss
