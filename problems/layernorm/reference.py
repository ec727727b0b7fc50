"""The definition of layer normalization."""

import torch


def reference(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float) -> torch.Tensor:
    """Each row of x [rows, cols] less its mean, over its standard deviation, times weight, plus bias [cols]."""
    return torch.nn.functional.layer_norm(x, weight.shape, weight, bias, eps)
