"""A scaled vector, shifted."""

import torch


def reference(x: torch.Tensor, shift: torch.Tensor, factor: float) -> torch.Tensor:
    """`[n]`, `[n]` → `[n]`."""
    return factor * x + shift
