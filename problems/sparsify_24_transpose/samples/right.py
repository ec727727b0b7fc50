"""Right: an element is kept if fewer than two others go before it, which are larger, or equal and of lower index."""

import torch


def chosen(groups):
    size, place = groups.abs(), torch.arange(4, device=groups.device)
    mine, other = size[..., :, None], size[..., None, :]
    before = (other > mine) | ((other == mine) & (place < place[:, None]))
    return before.sum(dim=-1) < 2


def prune(w, values, indices):
    groups = w.reshape(*indices.shape, 2, 4)
    kept, place = chosen(groups), torch.arange(4, device=w.device)
    index = (place * kept + 4 * ~kept).sort(dim=-1).values[..., :2]  # those kept, then what is out of range
    values.copy_(groups.gather(-1, index).view(values.shape))
    nibbles = index[..., 0] | index[..., 1] << 2
    indices.copy_(nibbles[..., 0] | nibbles[..., 1] << 4)


def sparsify_24_transpose(x, values, indices, values_t, indices_t):
    prune(x, values, indices)
    prune(x.T, values_t, indices_t)
