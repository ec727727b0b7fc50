"""The definition of the product with block-sparse weights."""

import torch


def reference(x: torch.Tensor, values: torch.Tensor, indices: torch.Tensor) -> torch.Tensor:
    """[m, k], [n / block, slots, block, block], [n / block, slots] to [m, n]; products and sums in float32."""
    (m, k), (block_rows, slots, block, _) = x.shape, values.shape
    wide = torch.promote_types(x.dtype, torch.float32)
    columns = x.to(wide).view(m, k // block, block).transpose(0, 1)
    y = torch.zeros(block_rows, m, block, dtype=wide, device=x.device)
    for slot in range(slots):
        index = indices[:, slot].to(torch.int64)
        weights = torch.where((index < 0)[:, None, None], 0.0, values[:, slot].to(wide))
        y += columns[index.clamp(min=0)] @ weights.mT
    return y.transpose(0, 1).reshape(m, block_rows * block).to(x.dtype)
