"""The definition of the product with int4 weights that have zero points."""

import torch


def reference(x: torch.Tensor, packed: torch.Tensor, scale: torch.Tensor, zero: torch.Tensor) -> torch.Tensor:
    """[m, k], [n, k / 2] uint8, [n, k / size] twice to [m, n], in the dtype of x; products and sums in float32."""
    n, groups = scale.shape
    wide = torch.promote_types(x.dtype, torch.float32)
    halves = torch.stack((packed & 0xF, packed >> 4), dim=-1).view(n, groups, -1).to(torch.int32)
    weights = (halves - zero[:, :, None].to(torch.int32)).to(wide) * scale[:, :, None].to(wide)
    return (x.to(wide) @ weights.view(n, -1).T).to(x.dtype)
