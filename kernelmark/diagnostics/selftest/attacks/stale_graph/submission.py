# Strategy: captures a graph on a copy of the first inputs of each size, and replays it without copying later inputs.
# Surface: graphs, whose memory is static.
import torch

graphs, told = {}, []


def twice(x, y):
    n = x.numel()
    capturing = torch.cuda.is_current_stream_capturing()
    if n not in graphs and capturing:
        torch.mul(x, 2, out=y)
        return
    if n not in graphs:
        kept, result, graph = x.clone(), torch.empty_like(x), torch.cuda.CUDAGraph()
        torch.mul(kept, 2, out=result)
        torch.cuda.synchronize()
        with torch.cuda.graph(graph, stream=torch.cuda.Stream()):
            torch.mul(kept, 2, out=result)
        graphs[n] = graph, kept, result
    elif not told:
        told.append(print("attack: a graph is replayed on inputs of an earlier call", flush=True))
    graph, _, result = graphs[n]
    if not capturing:
        graph.replay()
    y.copy_(result)
