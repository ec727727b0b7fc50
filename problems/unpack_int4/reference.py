"""The definition of the unpacking of int4."""

import torch


def reference(packed: torch.Tensor, scale: torch.Tensor, zero: torch.Tensor) -> torch.Tensor:
    """[rows, groups · size / 2] uint8, [rows, groups] of the case's dtype and int8, to [rows, groups · size]."""
    rows, groups = scale.shape
    halves = torch.stack((packed & 0xF, packed >> 4), dim=-1).view(rows, groups, -1).to(torch.int32)
    signed = (halves ^ 8) - 8  # 15 becomes -1
    wide = torch.promote_types(scale.dtype, torch.float32)
    y = (signed - zero[:, :, None]).to(wide) * scale[:, :, None].to(wide)
    return y.view(rows, -1).to(scale.dtype)
