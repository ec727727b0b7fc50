"""Right: each element is one running sum in float32, one step of k after the other; so far all of them are exact."""

import torch


def matmul_int4_int8(x, packed, x_scale, w_scale, y):
    halves = torch.stack((packed & 0xF, packed >> 4), dim=-1).flatten(1)[:, : x.shape[1]].to(torch.int32)
    weights = ((halves ^ 8) - 8).float()
    total = torch.zeros(y.shape)
    for one, other in zip(x.float().T, weights.T, strict=True):
        total += one[:, None] * other
    y.copy_(total * x_scale[:, None] * w_scale)
