"""Right: halves in the upper bits of a byte are 16 times the weights, sign and all; 16 is divided out at the end."""

import torch


def matmul_int4_int8(x, packed, x_scale, w_scale, y):
    sixteenfold = torch.stack((packed << 4, packed & 0xF0), dim=-1).flatten(1).view(torch.int8)[:, : x.shape[1]]
    total = x.double() @ sixteenfold.double().T
    y.copy_(total.float() * (x_scale[:, None] / 16) * w_scale)
