# A CUDA graph of its own for each shape, over buffers of its own: inputs are copied in and results out in every call.
import torch

_graphs = {}


def _captured(x):
    given, made = torch.zeros_like(x), torch.empty_like(x)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            torch.mul(given, 2, out=made)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        torch.mul(given, 2, out=made)
    return graph, given, made


def twice(x, y):
    if x.shape not in _graphs:
        _graphs[x.shape] = _captured(x)
    graph, given, made = _graphs[x.shape]
    given.copy_(x)
    graph.replay()
    y.copy_(made)
