"""Right: scores, the sums of weights and outputs are running sums in float32, one term after the other."""

import torch


def attention(q, k, v, o, is_causal):
    length, size = q.shape[2:]
    group = q.shape[1] // k.shape[1]
    k_, v_ = (each.float().repeat_interleave(group, dim=1) for each in (k, v))
    scores = total(q.float()[..., i, None] * k_[..., None, :, i] for i in range(size)) * size**-0.5
    if is_causal:
        scores.masked_fill_(torch.ones(length, length, dtype=torch.bool).triu(1), float("-inf"))
    powers = torch.exp(scores - scores.amax(dim=-1, keepdim=True))
    weights = (powers / total(powers[..., j, None] for j in range(length))).to(v.dtype).float()
    o.copy_(total(weights[..., j, None] * v_[..., j, None, :] for j in range(length)))


def total(terms):
    found = 0.0
    for term in terms:
        found = found + term
    return found
