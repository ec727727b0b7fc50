"""Wrong: the column sums stop at the last whole block of 32 rows."""

import torch


def layernorm_backward(dy, x, weight, dx, dweight, dbias, eps):
    dy_, x_, w = dy.float(), x.float(), weight.float()
    centred = x_ - x_.mean(dim=1, keepdim=True)
    scale = torch.rsqrt(centred.square().mean(dim=1, keepdim=True) + eps)
    normal, g = centred * scale, dy_ * w
    dx.copy_(scale * (g - g.mean(dim=1, keepdim=True) - normal * (g * normal).mean(dim=1, keepdim=True)))
    whole = max(len(x) // 32 * 32, 1)
    dweight.copy_((dy_ * normal)[:whole].sum(dim=0))
    dbias.copy_(dy_[:whole].sum(dim=0))
