"""Wrong: x is rounded to bfloat16."""

import torch


def gelu(x, y):
    y.copy_(torch.nn.functional.gelu(x.bfloat16().float(), approximate="tanh"))
