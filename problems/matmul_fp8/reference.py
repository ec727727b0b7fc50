"""The definition of the scaled float8 product."""

import torch


def reference(a: torch.Tensor, b: torch.Tensor, a_scale: torch.Tensor, b_scale: torch.Tensor) -> torch.Tensor:
    """[m, k], [n, k] float8 and their blocks' scales to [m, n] bfloat16; products and sums in float32."""
    wide = torch.promote_types(a_scale.dtype, torch.float32)
    left, right = _scaled(a, a_scale, wide), _scaled(b, b_scale, wide)
    return (left @ right.T).to(wide if a_scale.dtype is torch.float64 else torch.bfloat16)


def _scaled(values: torch.Tensor, scale: torch.Tensor, wide: torch.dtype) -> torch.Tensor:
    """Each value times the scale of its block; all blocks are of one size."""
    height, width = (extent // blocks for extent, blocks in zip(values.shape, scale.shape, strict=True))
    return values.to(wide) * scale.to(wide).repeat_interleave(height, 0).repeat_interleave(width, 1)
