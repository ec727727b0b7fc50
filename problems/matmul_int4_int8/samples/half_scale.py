"""Wrong: scales are kept in float16, which is infinite above 65504 and 0 below 3e-8."""

import torch


def matmul_int4_int8(x, packed, x_scale, w_scale, y):
    halves = torch.stack((packed & 0xF, packed >> 4), dim=-1).flatten(1)[:, : x.shape[1]].to(torch.int32)
    total = x.double() @ ((halves ^ 8) - 8).double().T
    y.copy_(total * x_scale.half().double()[:, None] * w_scale.half().double())
