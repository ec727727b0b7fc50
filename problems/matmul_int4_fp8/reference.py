"""The definition of the scaled product of float8 activations and int4 weights."""

import torch


def reference(x: torch.Tensor, packed: torch.Tensor, x_scale: torch.Tensor, w_scale: torch.Tensor) -> torch.Tensor:
    """[m, k] float8, [n, ceil(k / 2)] uint8, [m], [n] to [m, n] bfloat16: sums in float32 at the least."""
    wide = torch.promote_types(x_scale.dtype, torch.float32)
    halves = torch.stack((packed & 0xF, packed >> 4), dim=-1).flatten(1)[:, : x.shape[1]].to(torch.int32)
    weights = (halves ^ 8) - 8  # 15 becomes -1
    scaled = (x.to(wide) @ weights.to(wide).T) * x_scale.to(wide)[:, None] * w_scale.to(wide)
    return scaled if x_scale.dtype is torch.float64 else scaled.to(torch.bfloat16)
