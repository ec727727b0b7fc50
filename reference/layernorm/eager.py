"""Layer normalization in PyTorch."""

import torch


def layernorm(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, y: torch.Tensor, eps: float) -> None:
    """y = each row of x normalized, times weight, plus bias: [rows, cols], [cols], [cols], [rows, cols]."""
    wide = torch.float32 if x.is_cuda else x.dtype  # what PyTorch's kernels keep mean and scale in
    mean, scale = (torch.empty(len(x), 1, device=x.device, dtype=wide) for _ in range(2))
    torch.ops.aten.native_layer_norm.out(x, weight.shape, weight, bias, eps, out0=y, out1=mean, out2=scale)
