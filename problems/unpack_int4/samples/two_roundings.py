"""Wrong: q · scale and zero · scale are rounded to 16 bits each, and then their difference is."""

import torch


def unpack_int4(packed, scale, zero, y):
    rows, groups = scale.shape
    halves = torch.stack((packed & 0xF, packed >> 4), dim=-1).view(rows, groups, -1).to(torch.int8)
    values = ((halves ^ 8) - 8).to(scale.dtype) * scale[:, :, None]
    y.copy_((values - zero[:, :, None].to(scale.dtype) * scale[:, :, None]).view(rows, -1))
