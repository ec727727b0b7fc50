"""Wrong: sums in the activations' own dtype."""

import torch


def matmul_int8_weights(x, w, scale, y):
    total = torch.zeros_like(y)
    for along in range(x.shape[1]):
        total += x[:, along, None] * w[None, :, along].to(x.dtype)
    y.copy_(total.float() * scale)
