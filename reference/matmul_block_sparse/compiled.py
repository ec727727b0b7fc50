"""The product with block-sparse weights as `torch.compile` makes it: the baseline of those who write no kernel at all.

What each row of blocks needs of x is gathered; then it is one dense product for each row of blocks.
"""

import torch

torch._dynamo.config.recompile_limit = 64  # the shapes are static, and every test has its own


@torch.compile(dynamic=False)
def matmul_block_sparse(x: torch.Tensor, values: torch.Tensor, indices: torch.Tensor, y: torch.Tensor) -> None:
    """[m, k], [n / block, slots, block, block], [n / block, slots] int32 to [m, n]; -1 marks an empty slot."""
    (m, k), (block_rows, slots, block, _) = x.shape, values.shape
    empty = (indices < 0)[:, :, None, None]
    weights = torch.where(empty, 0.0, values.mT).reshape(block_rows, slots * block, block)
    token = torch.arange(m, device=x.device)[:, None]
    taken = x.view(m, k // block, block)[token, indices.clamp(min=0).to(torch.int64)[:, None, :]]
    products = torch.bmm(taken.view(block_rows, m, slots * block), weights)
    y.view(m, block_rows, block).copy_(products.transpose(0, 1))
