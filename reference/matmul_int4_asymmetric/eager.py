"""The product with int4 weights and zero points in PyTorch: the weights are made wide in memory first."""

import torch


def matmul_int4_asymmetric(
    x: torch.Tensor, packed: torch.Tensor, scale: torch.Tensor, zero: torch.Tensor, y: torch.Tensor
) -> None:
    """[m, k], [n, k / 2] uint8, [n, k / size] and its like in uint8 to [m, n]; the rest is float16 or bfloat16."""
    n, groups = scale.shape
    halves = torch.stack((packed & 0xF, packed >> 4), dim=-1).view(n, groups, -1)
    # The difference wraps around in an unsigned byte; the same bits, taken for signed, are -15 to 15.
    weights = (halves - zero[:, :, None]).view(torch.int8).to(scale.dtype) * scale[:, :, None]
    torch.mm(x, weights.view(n, -1).T, out=y)
