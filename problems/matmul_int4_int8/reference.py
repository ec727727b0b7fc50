"""The definition of the scaled product of int8 activations and int4 weights."""

import torch


def reference(x: torch.Tensor, packed: torch.Tensor, x_scale: torch.Tensor, w_scale: torch.Tensor) -> torch.Tensor:
    """[m, k] int8, [n, ceil(k / 2)] uint8, [m], [n] to [m, n] float16: an exact sum, scaled, rounded once."""
    halves = torch.stack((packed & 0xF, packed >> 4), dim=-1).flatten(1)[:, : x.shape[1]].to(torch.int32)
    weights = (halves ^ 8) - 8  # 15 becomes -1
    # Exact in float64: |sum| <= 127 · 8 · k, which is below 2⁵³ for every k below 8 · 10¹².
    total = x.double() @ weights.double().T
    scaled = total * x_scale.double()[:, None] * w_scale.double()[None, :]
    return scaled if x_scale.dtype is torch.float64 else scaled.to(torch.float16)
