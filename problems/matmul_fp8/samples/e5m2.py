"""Wrong: the bytes are read as e5m2, the other format of eight bits."""

import torch


def matmul_fp8(a, b, a_scale, b_scale, c):
    c.copy_(scaled(a, a_scale) @ scaled(b, b_scale).T)


def scaled(values, scale):
    height, width = (extent // blocks for extent, blocks in zip(values.shape, scale.shape, strict=True))
    wide = values.view(torch.uint8).view(torch.float8_e5m2).float()
    return wide * scale.repeat_interleave(height, 0).repeat_interleave(width, 1)
