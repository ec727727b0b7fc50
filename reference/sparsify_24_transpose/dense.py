"""One dense product of W with 4096 tokens, by cuBLAS: what pruning W is to make faster."""

import torch


def dense(x: torch.Tensor, w: torch.Tensor, y: torch.Tensor) -> None:
    """[4096, cols], [rows, cols] to [4096, rows], all of one dtype."""
    torch.mm(x, w.T, out=y)
