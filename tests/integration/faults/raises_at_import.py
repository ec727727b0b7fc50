import torch

TABLE = {}["nothing"]


def scale(x, y):
    torch.mul(x, 2, out=y)
