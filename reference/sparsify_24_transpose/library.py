"""PyTorch's pruning for training: one mask for W and its transpose, 2:4 in both directions of each 4 × 4 tile.

It is another function than the problem's two masks, in CUTLASS's format, and allocates what it returns.
"""

import torch


def library(x: torch.Tensor, unused: torch.Tensor) -> None:
    """[rows, cols], float16 or bfloat16."""
    torch._sparse_semi_structured_tile(x)
