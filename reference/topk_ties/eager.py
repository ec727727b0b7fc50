"""The k largest in PyTorch: a stable sort, since `torch.topk` says nothing about ties."""

import torch


def topk_ties(x: torch.Tensor, values: torch.Tensor, indices: torch.Tensor, k: int) -> None:
    """The k largest of x [rows, cols] into values [rows, k], and where they are into indices [rows, k]."""
    held, order = torch.sort(x, dim=1, descending=True, stable=True)
    values.copy_(held[:, :k])
    indices.copy_(order[:, :k])
