# Reads a value back and waits for the device inside the call: no graph, so it is called plainly.
import torch


def twice(x, y):
    largest = x.abs().max().item()
    factor = 2.0 if largest >= 0 else 0.0
    torch.mul(x, factor, out=y)
    torch.cuda.current_stream().synchronize()
    torch.cuda.synchronize()
