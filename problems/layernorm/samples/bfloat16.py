"""Wrong: computes in bfloat16."""

import torch


def layernorm(x, weight, bias, y, eps):
    narrow = (tensor.bfloat16() for tensor in (x, weight, bias))
    x, weight, bias = narrow
    y.copy_(torch.nn.functional.layer_norm(x, weight.shape, weight, bias, eps))
