"""Twice a vector."""

import torch


def reference(x: torch.Tensor) -> torch.Tensor:
    """`[n]` → `[n]`."""
    return 2 * x
