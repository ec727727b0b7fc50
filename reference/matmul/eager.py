"""Matrix multiplication in PyTorch, written straight into the output."""

import torch


def matmul(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> None:
    """c = a @ b: [m, k], [k, n], [m, n], all of one dtype."""
    torch.matmul(a, b, out=c)
