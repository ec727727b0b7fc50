"""The product with 2:4 sparse weights in PyTorch: the weights are made dense in memory first, which is what costs."""

import torch


def matmul_sparse_24(x: torch.Tensor, values: torch.Tensor, indices: torch.Tensor) -> torch.Tensor:
    """[m, k], [n, k / 2], [n, k / 8] uint8 to [m, n]; all but the bytes are float16 or bfloat16."""
    n, nbytes = indices.shape
    nibbles = torch.stack((indices & 0xF, indices >> 4), dim=-1).view(n, -1)
    places = torch.stack((nibbles & 3, nibbles >> 2), dim=-1).to(torch.int64)
    weights = torch.zeros(n, 2 * nbytes, 4, dtype=x.dtype, device=x.device)
    weights.scatter_(-1, places, values.view(n, -1, 2))
    return x @ weights.view(n, -1).T
