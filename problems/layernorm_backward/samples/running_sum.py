"""Wrong: all sums are running sums in float32; a mean far from zero turns their error into that of every column."""

import torch


def total(parts):
    found = torch.zeros_like(parts[0])
    for part in parts:
        found += part
    return found


def mean(x):
    return (total(x.T) / x.shape[1])[:, None]


def layernorm_backward(dy, x, weight, dx, dweight, dbias, eps):
    dy_, x_, weight_ = dy.float(), x.float(), weight.float()
    centred = x_ - mean(x_)
    scale = torch.rsqrt(mean(centred * centred) + eps)
    normal, g = centred * scale, dy_ * weight_
    dx.copy_(scale * (g - mean(g) - normal * mean(g * normal)))
    dweight.copy_(total(dy_ * normal))
    dbias.copy_(total(dy_))
