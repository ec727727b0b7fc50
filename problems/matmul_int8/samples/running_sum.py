"""Right: each element is one running sum in float32, one step of k after the other; so far all of them are exact."""

import torch


def matmul_int8(a, b, a_scale, b_scale, c):
    total = torch.zeros(c.shape)
    for one, other in zip(a.float().T, b.float().T, strict=True):
        total += one[:, None] * other
    c.copy_(total * a_scale[:, None] * b_scale)
