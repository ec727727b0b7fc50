"""Wrong: the mean of the squares less the square of the mean, which cancels in rows far from zero."""

import torch


def layernorm(x, weight, bias, y, eps):
    wide = x.float()
    mean = wide.mean(dim=1, keepdim=True)
    variance = (wide.square().mean(dim=1, keepdim=True) - mean.square()).clamp_min(0)
    y.copy_((wide - mean) * torch.rsqrt(variance + eps) * weight.float() + bias.float())
