"""int8 weights times a vector in PyTorch: the weights are made wide in memory first, which is what costs."""

import torch


def gemv_int8(w: torch.Tensor, scale: torch.Tensor, x: torch.Tensor, y: torch.Tensor) -> None:
    """y = scale · (w @ x): [n, k] int8, [n] float32, [k] float16 to [n] float16."""
    y.copy_((w.float() @ x.float()) * scale)
