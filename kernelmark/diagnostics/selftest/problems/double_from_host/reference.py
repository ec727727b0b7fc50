"""Twice a vector, and a number."""

import torch


def reference(x: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """`[n]`, `[1]` → `[n]`."""
    return 2 * x + b
