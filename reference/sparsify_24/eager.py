"""Pruning to 2:4 in PyTorch: each group is sorted by magnitude, and of equal ones the lower index comes first."""

import torch


def sparsify_24(x: torch.Tensor, values: torch.Tensor, indices: torch.Tensor, transposed: int) -> None:
    """x, [rows, cols], or its transpose, to [n, k / 2] kept elements and [n, k / 8] bytes of four 2-bit indices."""
    n, nbytes = indices.shape
    groups = (x.T if transposed else x).reshape(n, 2 * nbytes, 4)
    kept = groups.abs().sort(dim=-1, descending=True, stable=True).indices[..., :2].sort(dim=-1).values
    torch.gather(groups, -1, kept, out=values.view(n, 2 * nbytes, 2))
    nibbles = (kept[..., 0] | kept[..., 1] << 2).view(n, nbytes, 2)
    indices.copy_(nibbles[..., 0] | nibbles[..., 1] << 4)
