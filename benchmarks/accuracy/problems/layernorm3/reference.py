"""The definition of layer normalisation without weights, and with nothing added to the variance."""

import torch


def reference(x: torch.Tensor) -> torch.Tensor:
    """Each row centred and divided by its standard deviation: [rows, cols] to [rows, cols]."""
    return (x - x.mean(dim=-1, keepdim=True)) / x.std(dim=-1, correction=0, keepdim=True)
