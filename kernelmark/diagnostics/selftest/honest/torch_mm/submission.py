# PyTorch's own product into the given output: the twin of most attacks on `product`.
import torch


def product(a, b, c):
    torch.mm(a, b, out=c)
