"""int8 weights times a vector as `torch.compile` makes it: the baseline of those who write no kernel at all."""

import torch

torch._dynamo.config.recompile_limit = 64  # the shapes are static, and every test has its own


@torch.compile(dynamic=False)
def gemv_int8(w: torch.Tensor, scale: torch.Tensor, x: torch.Tensor, y: torch.Tensor) -> None:
    """y = scale · (w @ x): [n, k] int8, [n] float32, [k] float16 to [n] float16."""
    y.copy_((w.float() * x.float()).sum(dim=1) * scale)  # a sum, which is fused; a product of matrices is not
