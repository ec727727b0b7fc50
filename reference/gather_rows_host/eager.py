"""A lookup of rows in PyTorch, written straight into the output."""

import torch


def gather_rows_host(table: torch.Tensor, ids: torch.Tensor, out: torch.Tensor) -> None:
    """out[i] = table[ids[i]]: [rows, cols] float32 and [picked] int64 → [picked, cols]."""
    torch.index_select(table, 0, ids, out=out)
