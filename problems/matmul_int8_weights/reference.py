"""The definition of the product of 16-bit activations and int8 weights."""

import torch


def reference(x: torch.Tensor, w: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    """[m, k], [n, k] int8, [n] float32 to [m, n]: products and sums in float32 at the least, rounded once."""
    wide = torch.promote_types(x.dtype, torch.float32)
    return ((x.to(wide) @ w.to(wide).T) * scale.to(wide)).to(x.dtype)
