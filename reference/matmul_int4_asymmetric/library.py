"""PyTorch's own product with int4 weights, that of torchao's `int4_weight_only`: tinygemm, with its own packing."""

import torch


def library(x: torch.Tensor, packed: torch.Tensor, scale_and_zero: torch.Tensor, y: torch.Tensor) -> None:
    """[m, k] bfloat16, [n / 8, k / 128, 32, 4] int32, [k / 128, n, 2] bfloat16 to [m, n] bfloat16."""
    y.copy_(torch._weight_int4pack_mm(x, packed, 128, scale_and_zero))
