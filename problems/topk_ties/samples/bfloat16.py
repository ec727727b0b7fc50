"""Wrong: compares in bfloat16, which makes equals of numbers that are not."""

import torch


def topk_ties(x, values, indices, k):
    order = torch.sort(x.bfloat16(), dim=1, descending=True, stable=True).indices[:, :k]
    values.copy_(x.gather(1, order))
    indices.copy_(order)
