"""PyTorch's product with weights in BSR format, by its Triton kernels."""

import torch


def library(x: torch.Tensor, values: torch.Tensor, columns: torch.Tensor, y: torch.Tensor) -> None:
    """[m, k], [blocks, block, block], [blocks] int32 to [m, n]; every row of blocks has equally many."""
    k, n, block = x.shape[1], y.shape[1], values.shape[1]
    rows = n // block
    starts = torch.arange(0, len(columns) + 1, len(columns) // rows, dtype=torch.int32, device=x.device)
    weights = torch.sparse_bsr_tensor(starts, columns, values, size=(n, k), check_invariants=False)
    y.copy_(torch.nn.functional.linear(x, weights))
