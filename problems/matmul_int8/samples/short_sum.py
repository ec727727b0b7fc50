"""Wrong: sums in int16, which holds two of the largest products."""

import torch


def matmul_int8(a, b, a_scale, b_scale, c):
    total = torch.zeros(c.shape, dtype=torch.int16, device=c.device)
    for along in range(a.shape[1]):
        total += a[:, along, None].short() * b[None, :, along].short()
    c.copy_(total.float() * a_scale[:, None] * b_scale[None, :])
