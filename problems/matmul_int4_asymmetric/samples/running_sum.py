"""Right: each element is one running sum in float32, one step of k after the other."""

import torch


def matmul_int4_asymmetric(x, packed, scale, zero, y):
    n, groups = scale.shape
    halves = torch.stack((packed & 0xF, packed >> 4), dim=-1).view(n, groups, -1)
    weights = ((halves.float() - zero[:, :, None]) * scale[:, :, None].float()).view(n, -1)
    total = torch.zeros(y.shape)
    for one, other in zip(x.float().T, weights.T, strict=True):
        total += one[:, None] * other
    y.copy_(total)
