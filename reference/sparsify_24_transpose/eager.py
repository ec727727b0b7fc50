"""Pruning to 2:4 in both directions in PyTorch: two passes, each of which sorts the groups by magnitude."""

import torch


def prune(w: torch.Tensor, values: torch.Tensor, indices: torch.Tensor) -> None:
    """w, [n, k], to [n, k / 2] kept elements and [n, k / 8] bytes; of equal ones the lower index comes first."""
    n, nbytes = indices.shape
    groups = w.reshape(n, 2 * nbytes, 4)
    kept = groups.abs().sort(dim=-1, descending=True, stable=True).indices[..., :2].sort(dim=-1).values
    torch.gather(groups, -1, kept, out=values.view(n, 2 * nbytes, 2))
    nibbles = (kept[..., 0] | kept[..., 1] << 2).view(n, nbytes, 2)
    indices.copy_(nibbles[..., 0] | nibbles[..., 1] << 4)


def sparsify_24_transpose(
    x: torch.Tensor, values: torch.Tensor, indices: torch.Tensor, values_t: torch.Tensor, indices_t: torch.Tensor
) -> None:
    """x, [rows, cols], and its transpose to kept elements and bytes of four 2-bit indices."""
    prune(x, values, indices)
    prune(x.T, values_t, indices_t)
