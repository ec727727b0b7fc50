"""Right: each element is one running sum in float32, one step of k after the other."""

import torch


def gemv_int8(w, scale, x, y):
    total = torch.zeros(len(w))
    for column, value in zip(w.float().T, x.float(), strict=True):
        total += column * value
    y.copy_(total * scale)
