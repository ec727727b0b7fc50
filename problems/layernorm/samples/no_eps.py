"""Wrong: leaves eps out, which shows where the variance is below it."""

import torch


def layernorm(x, weight, bias, y, eps):
    wide = x.float()
    centred = wide - wide.mean(dim=1, keepdim=True)
    scale = torch.rsqrt(centred.square().mean(dim=1, keepdim=True))
    y.copy_(centred * scale * weight.float() + bias.float())
