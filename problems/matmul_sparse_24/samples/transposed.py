"""Right: the weights are on the left, as sparse matrix units want them, and the result is returned as a view."""

import torch


def matmul_sparse_24(x, values, indices):
    n = len(values)
    nibbles = torch.stack((indices & 0xF, indices >> 4), dim=-1).view(n, -1)
    places = torch.stack((nibbles & 3, nibbles >> 2), dim=-1).to(torch.int64)
    weights = torch.zeros(n, nibbles.shape[1], 4, dtype=x.dtype, device=x.device)
    weights = weights.scatter_(-1, places, values.view(n, -1, 2)).view(n, -1)
    return (weights @ x.T).T
