import torch


def twice(x, y):
    torch.add(x, x, out=y)
