"""Wrong: sums in bfloat16."""

import torch


def matmul_int4_fp8(x, packed, x_scale, w_scale, y):
    halves = torch.stack((packed & 0xF, packed >> 4), dim=-1).flatten(1)[:, : x.shape[1]].to(torch.int32)
    weights = ((halves ^ 8) - 8).bfloat16()
    total = torch.zeros_like(y)
    for along in range(x.shape[1]):
        total += x[:, along, None].bfloat16() * weights[None, :, along]
    y.copy_(total.float() * x_scale[:, None] * w_scale)
