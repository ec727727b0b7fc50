"""Wrong: sums the columns in float16."""

import torch


def layernorm_backward(dy, x, weight, dx, dweight, dbias, eps):
    dy_, x_, w = dy.float(), x.float(), weight.float()
    centred = x_ - x_.mean(dim=1, keepdim=True)
    scale = torch.rsqrt(centred.square().mean(dim=1, keepdim=True) + eps)
    normal, g = centred * scale, dy_ * w
    dx.copy_(scale * (g - g.mean(dim=1, keepdim=True) - normal * (g * normal).mean(dim=1, keepdim=True)))
    dweight.copy_((dy_ * normal).half().cumsum(dim=0, dtype=torch.float16)[-1])
    dbias.copy_(dy_.half().cumsum(dim=0, dtype=torch.float16)[-1])
