"""The product with int4 weights in PyTorch: the weights are made wide in memory first, which is what costs."""

import torch


def matmul_int4(x: torch.Tensor, packed: torch.Tensor, scale: torch.Tensor, y: torch.Tensor) -> None:
    """[m, k], [n, k / 2] uint8, [n, k / size] to [m, n]; all but the bytes are float16 or bfloat16."""
    n, groups = scale.shape
    halves = torch.stack((packed & 0xF, packed >> 4), dim=-1).view(n, groups, -1)
    weights = ((halves ^ 8).view(torch.int8) - 8).to(scale.dtype) * scale[:, :, None]
    torch.mm(x, weights.view(n, -1).T, out=y)
