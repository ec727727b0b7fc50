import torch


def square(x, y):
    torch.mul(x, x, out=
