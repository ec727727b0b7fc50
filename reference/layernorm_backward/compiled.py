"""The gradients of layer normalization as `torch.compile` makes them: for those who write no kernel at all."""

import torch

torch._dynamo.config.recompile_limit = 64  # the shapes are static, and every test has its own


@torch.compile(dynamic=False)
def layernorm_backward(
    dy: torch.Tensor,
    x: torch.Tensor,
    weight: torch.Tensor,
    dx: torch.Tensor,
    dweight: torch.Tensor,
    dbias: torch.Tensor,
    eps: float,
) -> None:
    """dx [rows, cols], dweight and dbias [cols], of dy and x [rows, cols] and weight [cols]."""
    dy_, x_, weight_ = dy.float(), x.float(), weight.float()
    centred = x_ - x_.mean(dim=1, keepdim=True)
    scale = torch.rsqrt(centred.square().mean(dim=1, keepdim=True) + eps)
    normal, g = centred * scale, dy_ * weight_
    dx.copy_(scale * (g - g.mean(dim=1, keepdim=True) - normal * (g * normal).mean(dim=1, keepdim=True)))
    dweight.copy_((dy_ * normal).sum(dim=0))
    dbias.copy_(dy_.sum(dim=0))
