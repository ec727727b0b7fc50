"""Wrong: leaves eps out, which shows where the variance is below it."""

import torch


def layernorm_backward(dy, x, weight, dx, dweight, dbias, eps):
    dy_, x_, w = dy.float(), x.float(), weight.float()
    centred = x_ - x_.mean(dim=1, keepdim=True)
    scale = torch.rsqrt(centred.square().mean(dim=1, keepdim=True))
    normal, g = centred * scale, dy_ * w
    dx.copy_(scale * (g - g.mean(dim=1, keepdim=True) - normal * (g * normal).mean(dim=1, keepdim=True)))
    dweight.copy_((dy_ * normal).sum(dim=0))
    dbias.copy_(dy_.sum(dim=0))
