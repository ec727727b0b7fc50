"""The definition of the product of int8 weights and a vector."""

import torch


def reference(w: torch.Tensor, scale: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """[n, k] int8, [n] float32, [k] float16 to [n] float16: products and sums in float32 at the least."""
    wide = torch.promote_types(x.dtype, torch.float32)
    return ((w.to(wide) @ x.to(wide)) * scale.to(wide)).to(x.dtype)
