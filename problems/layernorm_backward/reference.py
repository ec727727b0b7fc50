"""The definition of layer normalization's gradients."""

import torch


def reference(
    dy: torch.Tensor, x: torch.Tensor, weight: torch.Tensor, eps: float
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """dx [rows, cols], dweight [cols] and dbias [cols], given dy and x [rows, cols] and weight [cols].

    Sums are taken in float32 at the least, as PyTorch's own kernels do: over many rows 16 bits would not be honest.
    """
    wide = torch.promote_types(x.dtype, torch.float32)
    dy_, x_, weight_ = (tensor.to(wide) for tensor in (dy, x, weight))
    centred = x_ - x_.mean(dim=1, keepdim=True)
    normal = centred * torch.rsqrt(centred.square().mean(dim=1, keepdim=True) + eps)
    scale = torch.rsqrt(centred.square().mean(dim=1, keepdim=True) + eps)
    g = dy_ * weight_
    dx = scale * (g - g.mean(dim=1, keepdim=True) - normal * (g * normal).mean(dim=1, keepdim=True))
    return dx.to(x.dtype), (dy_ * normal).sum(dim=0).to(x.dtype), dy_.sum(dim=0).to(x.dtype)
