"""Wrong: means are running sums in float32, too coarse where a mean lies a thousand standard deviations from zero."""

import torch


def mean(x):
    total = torch.zeros(len(x))
    for column in x.T:
        total += column
    return (total / x.shape[1])[:, None]


def layernorm(x, weight, bias, y, eps):
    wide = x.float()
    wide = wide - mean(wide)
    y.copy_(wide * torch.rsqrt(mean(wide * wide) + eps) * weight.float() + bias.float())
