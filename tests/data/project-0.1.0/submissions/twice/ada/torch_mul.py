import torch


def twice(x, y):
    torch.mul(x, 2, out=y)
