"""Wrong: tanh u as (e^2u - 1) / (e^2u + 1), infinity over infinity for large x."""

import torch


def gelu(x, y):
    power = torch.exp(2 * 0.7978845608028654 * (x + 0.044715 * x**3))
    y.copy_(0.5 * x * (1 + (power - 1) / (power + 1)))
