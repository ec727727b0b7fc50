"""The product with int4 weights and zero points as `torch.compile` makes it: the baseline of those without a kernel."""

import torch

torch._dynamo.config.recompile_limit = 64  # the shapes are static, and every test has its own


@torch.compile(dynamic=False)
def matmul_int4_asymmetric(
    x: torch.Tensor, packed: torch.Tensor, scale: torch.Tensor, zero: torch.Tensor, y: torch.Tensor
) -> None:
    """[m, k], [n, k / 2] uint8, [n, k / size] and its like in uint8 to [m, n]; the rest is float16 or bfloat16."""
    n, groups = scale.shape
    halves = torch.stack((packed & 0xF, packed >> 4), dim=-1).view(n, groups, -1).to(torch.int32)
    weights = (halves - zero[:, :, None].to(torch.int32)).to(scale.dtype) * scale[:, :, None]
    y.copy_(x @ weights.view(n, -1).T)
