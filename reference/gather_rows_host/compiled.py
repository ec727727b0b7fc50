"""A lookup of rows as `torch.compile` makes it: the baseline of those who write no kernel at all."""

import torch

torch._dynamo.config.recompile_limit = 64  # the shapes are static, and every test has its own


@torch.compile(dynamic=False)
def gather_rows_host(table: torch.Tensor, ids: torch.Tensor, out: torch.Tensor) -> None:
    """out[i] = table[ids[i]]: [rows, cols] float32 and [picked] int64 → [picked, cols]."""
    out.copy_(table[ids])
