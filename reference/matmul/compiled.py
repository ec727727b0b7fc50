"""Matrix multiplication as `torch.compile` makes it: the baseline of those who write no kernel at all."""

import torch

torch._dynamo.config.recompile_limit = 64  # the shapes are static, and every test has its own


@torch.compile(dynamic=False)
def matmul(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> None:
    """c = a @ b: [m, k], [k, n], [m, n], all of one dtype."""
    torch.matmul(a, b, out=c)
