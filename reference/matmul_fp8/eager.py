"""The scaled product of float8 in PyTorch: operands made wide and scaled in memory first, then a product in float32."""

import torch


def matmul_fp8(a: torch.Tensor, b: torch.Tensor, a_scale: torch.Tensor, b_scale: torch.Tensor, c: torch.Tensor) -> None:
    """[m, k] and [n, k] float8 and their blocks' scales to [m, n] bfloat16."""
    (m, k), n = a.shape, len(b)
    if a.is_cuda and a_scale.numel() == b_scale.numel() == 1 and m % 16 == k % 16 == n % 16 == 0:
        # What PyTorch's kernel asks for. Without fast accumulation it moves its sums to float32 as it goes.
        torch._scaled_mm(a, b.T, scale_a=a_scale, scale_b=b_scale, out_dtype=c.dtype, out=c)
    else:
        c.copy_(scaled(a, a_scale) @ scaled(b, b_scale).T)


def scaled(values: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    """Each value times its block's scale, in float32."""
    height, width = (extent // blocks for extent, blocks in zip(values.shape, scale.shape, strict=True))
    return values.float() * scale.repeat_interleave(height, 0).repeat_interleave(width, 1)
