"""The definition of the product with 2:4 sparse weights."""

import torch


def reference(x: torch.Tensor, values: torch.Tensor, indices: torch.Tensor) -> torch.Tensor:
    """[m, k], [n, k / 2], [n, k / 8] uint8 to [m, n], in the dtype of x; products and sums in float32."""
    n, nbytes = indices.shape
    wide = torch.promote_types(x.dtype, torch.float32)
    nibbles = torch.stack((indices & 0xF, indices >> 4), dim=-1).view(n, -1)
    places = torch.stack((nibbles & 3, nibbles >> 2), dim=-1).to(torch.int64)
    weights = torch.zeros(n, 2 * nbytes, 4, dtype=wide, device=x.device)
    weights.scatter_(-1, places, values.view(n, -1, 2).to(wide))
    return (x.to(wide) @ weights.view(n, -1).T).to(x.dtype)
