"""int4 unpacked in PyTorch, an operation at a time."""

import torch


def unpack_int4(packed: torch.Tensor, scale: torch.Tensor, zero: torch.Tensor, y: torch.Tensor) -> None:
    """[rows, groups · size / 2] uint8, [rows, groups] of 16 bits and of int8, to [rows, groups · size] of 16 bits."""
    rows, groups = scale.shape
    halves = torch.stack((packed & 0xF, packed >> 4), dim=-1).view(rows, groups, -1)
    signed = (halves ^ 8).view(torch.int8) - 8
    y.copy_(((signed - zero[:, :, None]).float() * scale[:, :, None].float()).view(rows, -1))
