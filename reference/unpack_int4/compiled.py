"""The unpacking of int4 as `torch.compile` makes it: the baseline of those who write no kernel at all."""

import torch

torch._dynamo.config.recompile_limit = 64  # the shapes are static, and every test has its own


@torch.compile(dynamic=False)
def unpack_int4(packed: torch.Tensor, scale: torch.Tensor, zero: torch.Tensor, y: torch.Tensor) -> None:
    """[rows, groups · size / 2] uint8, [rows, groups] of 16 bits and of int8, to [rows, groups · size] of 16 bits."""
    rows, groups = scale.shape
    halves = torch.stack((packed & 0xF, packed >> 4), dim=-1).view(rows, groups, -1).to(torch.int32)
    signed = (halves ^ 8) - 8 - zero[:, :, None]
    y.copy_((signed.float() * scale[:, :, None].float()).view(rows, -1))
