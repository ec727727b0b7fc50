"""PyTorch's own product with int8 weights, that of torchao's `int8_weight_only`; scales and activations in bfloat16."""

import torch


def library(w: torch.Tensor, scale: torch.Tensor, x: torch.Tensor, y: torch.Tensor) -> None:
    """[n, k] int8, [n], [1, k] to [1, n]."""
    y.copy_(torch._weight_int8pack_mm(x, w, scale))
