"""Wrong: sums in float16, which counts by ones up to 2048 and ends at 65504."""

import torch


def matmul_int4_int8(x, packed, x_scale, w_scale, y):
    halves = torch.stack((packed & 0xF, packed >> 4), dim=-1).flatten(1).short()
    weights = ((halves ^ 8) - 8).half()
    total = torch.zeros_like(y)
    for along in range(x.shape[1]):
        total += x[:, along, None].half() * weights[None, :, along]
    y.copy_(total.float() * x_scale[:, None] * w_scale)
