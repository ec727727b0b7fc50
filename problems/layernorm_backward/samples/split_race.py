"""Wrong: every block of rows writes its partial column sums to the same place, and the last one wins."""

import torch


def layernorm_backward(dy, x, weight, dx, dweight, dbias, eps):
    dy_, x_, w = dy.float(), x.float(), weight.float()
    centred = x_ - x_.mean(dim=1, keepdim=True)
    scale = torch.rsqrt(centred.square().mean(dim=1, keepdim=True) + eps)
    normal, g = centred * scale, dy_ * w
    dx.copy_(scale * (g - g.mean(dim=1, keepdim=True) - normal * (g * normal).mean(dim=1, keepdim=True)))
    for part, own in zip((dy_ * normal).split(64), dy_.split(64), strict=True):
        dweight.copy_(part.sum(dim=0))
        dbias.copy_(own.sum(dim=0))
