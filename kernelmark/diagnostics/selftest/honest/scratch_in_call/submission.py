# Temporaries in every call, and results assigned to slices.
import torch


def twice(x, y):
    doubled = torch.empty_like(x)
    torch.add(x, x, out=doubled)
    half = len(x) // 2
    y[:half] = doubled[:half]
    rest = x[half:].clone()
    rest *= 2
    y[half:].copy_(rest)
