"""Wrong: sums in int16, which holds 32 of the largest products."""

import torch


def matmul_int4_int8(x, packed, x_scale, w_scale, y):
    halves = torch.stack((packed & 0xF, packed >> 4), dim=-1).flatten(1).short()
    weights = (halves ^ 8) - 8
    total = torch.zeros(y.shape, dtype=torch.int16, device=y.device)
    for along in range(x.shape[1]):
        total += x[:, along, None].short() * weights[None, :, along]
    y.copy_(total.float() * x_scale[:, None] * w_scale)
