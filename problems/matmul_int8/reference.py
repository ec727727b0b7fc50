"""The definition of the scaled int8 product."""

import torch


def reference(a: torch.Tensor, b: torch.Tensor, a_scale: torch.Tensor, b_scale: torch.Tensor) -> torch.Tensor:
    """[m, k] int8, [n, k] int8, [m], [n] to [m, n] bfloat16: an exact sum, scaled, rounded once."""
    # Exact in float64: |sum| <= 127 · 127 · k, which is below 2⁵³ for every k below 5 · 10¹¹.
    total = a.double() @ b.double().T
    scaled = total * a_scale.double()[:, None] * b_scale.double()[None, :]
    return scaled if a_scale.dtype is torch.float64 else scaled.to(torch.bfloat16)
