"""Wrong: 16-bit rows take a faster path, the mean of the squares less the square of the mean; float32 rows do not."""

import torch


def layernorm(x, weight, bias, y, eps):
    wide = x.float()
    mean = wide.mean(dim=1, keepdim=True)
    if x.dtype == torch.float32:
        variance = (wide - mean).square().mean(dim=1, keepdim=True)
    else:
        variance = (wide.square().mean(dim=1, keepdim=True) - mean.square()).clamp_min(0)
    y.copy_((wide - mean) * torch.rsqrt(variance + eps) * weight.float() + bias.float())
