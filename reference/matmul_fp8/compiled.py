"""The scaled product of float8 as `torch.compile` makes it: the baseline of those who write no kernel at all."""

import torch

torch._dynamo.config.recompile_limit = 64  # the shapes are static, and every test has its own


@torch.compile(dynamic=False)
def matmul_fp8(a: torch.Tensor, b: torch.Tensor, a_scale: torch.Tensor, b_scale: torch.Tensor, c: torch.Tensor) -> None:
    """[m, k] and [n, k] float8 and their blocks' scales to [m, n] bfloat16."""
    c.copy_(scaled(a, a_scale) @ scaled(b, b_scale).T)


def scaled(values: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    """Each value times its block's scale, in float32."""
    height, width = (extent // blocks for extent, blocks in zip(values.shape, scale.shape, strict=True))
    return values.float() * scale.repeat_interleave(height, 0).repeat_interleave(width, 1)
