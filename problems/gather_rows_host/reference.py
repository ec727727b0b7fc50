"""Rows of a table, by their numbers."""

import torch


def reference(table: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
    """`[rows, cols]`, `[picked]` → `[picked, cols]`."""
    return table[ids]
