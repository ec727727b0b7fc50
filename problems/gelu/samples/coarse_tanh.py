"""Wrong: a tanh as coarse as the hardware's tanh.approx, with 11 bits: 1 + tanh(u) cancels for negative x."""

import torch


def gelu(x, y):
    u = 0.7978845608028654 * (x + 0.044715 * x**3)
    y.copy_(0.5 * x * (1 + torch.tanh(u).half().float()))
