import torch


def row_sum(x, y):
    y.copy_(torch.einsum("rc->r", x))
