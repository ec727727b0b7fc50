"""The definition of GELU in its tanh form."""

import torch
from torch.nn import functional


def reference(x: torch.Tensor) -> torch.Tensor:
    """x/2 · (1 + tanh(√(2/π) · (x + 0.044715 x³))): [n] to [n], in the dtype of x."""
    return functional.gelu(x, approximate="tanh")
