# PyTorch's own multiplication into the given output: the twin of most attacks on `double`.
import torch


def twice(x, y):
    torch.mul(x, 2, out=y)
