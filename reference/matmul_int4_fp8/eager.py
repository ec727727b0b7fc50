"""The product of float8 and int4 in PyTorch: both operands are made wide in memory first, which is what costs."""

import torch


def matmul_int4_fp8(
    x: torch.Tensor, packed: torch.Tensor, x_scale: torch.Tensor, w_scale: torch.Tensor, y: torch.Tensor
) -> None:
    """[m, k] float8, [n, ceil(k / 2)] uint8, [m], [n] to [m, n] bfloat16."""
    halves = torch.stack(((packed << 4).view(torch.int8) >> 4, packed.view(torch.int8) >> 4), dim=-1)
    weights = halves.view(len(packed), -1)[:, : x.shape[1]]
    y.copy_((x.float() @ weights.float().T) * x_scale[:, None] * w_scale)
