"""Wrong: divides by one less than the number of columns, as a sample's variance does."""

import torch


def layernorm(x, weight, bias, y, eps):
    wide = x.float()
    centred = wide - wide.mean(dim=1, keepdim=True)
    variance = centred.square().sum(dim=1, keepdim=True) / (x.shape[1] - 1)
    y.copy_(centred * torch.rsqrt(variance + eps) * weight.float() + bias.float())
