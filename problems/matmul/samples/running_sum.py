"""Right: each element is one running sum in float32, one step of k after the other."""

import torch


def matmul(a, b, c):
    total = torch.zeros(c.shape)
    for column, row in zip(a.float().T, b.float(), strict=True):
        total += column[:, None] * row
    c.copy_(total)
