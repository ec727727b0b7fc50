"""Wrong: the erf form, which is another function."""

import torch


def gelu(x, y):
    y.copy_(x * 0.5 * (1 + torch.erf(x * 0.5**0.5)))
