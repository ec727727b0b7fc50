"""The product with 2:4 sparse weights as `torch.compile` makes it: the baseline of those who write no kernel at all.

Written with comparisons, which fuse into one pass that makes the weights dense; a scatter would not.
"""

import torch

torch._dynamo.config.recompile_limit = 64  # the shapes are static, and every test has its own


@torch.compile(dynamic=False)
def matmul_sparse_24(x: torch.Tensor, values: torch.Tensor, indices: torch.Tensor) -> torch.Tensor:
    """[m, k], [n, k / 2], [n, k / 8] uint8 to [m, n]; all but the bytes are float16 or bfloat16."""
    n = len(values)
    nibbles = torch.stack((indices & 0xF, indices >> 4), dim=-1).view(n, -1, 1)
    first, second = values.view(n, -1, 2)[..., :1], values.view(n, -1, 2)[..., 1:]
    place = torch.arange(4, device=x.device)
    weights = torch.where(nibbles & 3 == place, first, torch.where(nibbles >> 2 == place, second, 0.0))
    return x @ weights.view(n, -1).T
