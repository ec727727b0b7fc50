"""Right: every sum is a running sum in float32, one term after the other; those over heads as well."""

import torch


def attention_backward(dout, q, k, v, dq, dk, dv, is_causal):
    length, size = q.shape[2:]
    group = q.shape[1] // k.shape[1]
    dtype, dout_, q_ = q.dtype, dout.float(), q.float()
    k_, v_ = (each.float().repeat_interleave(group, dim=1) for each in (k, v))
    scores = product(q_, k_.mT) * size**-0.5
    if is_causal:
        scores.masked_fill_(torch.ones(length, length, dtype=torch.bool).triu(1), float("-inf"))
    powers = torch.exp(scores - scores.amax(dim=-1, keepdim=True))
    weights = powers / total(powers[..., j, None] for j in range(length))
    dweights = product(dout_, v_.mT)
    mean = total((weights * dweights)[..., j, None] for j in range(length))
    dscores = (weights * (dweights - mean) * size**-0.5).to(dtype).float()
    dq.copy_(product(dscores, k_))
    dk.copy_(over_heads(product(dscores.mT, q_), group))
    dv.copy_(over_heads(product(weights.to(dtype).float().mT, dout_), group))


def product(a, b):
    return total(a[..., i, None] * b[..., i, None, :] for i in range(a.shape[-1]))


def over_heads(x, group):
    parts = x.unflatten(1, (-1, group))
    return total(parts[:, :, i] for i in range(group))


def total(terms):
    found = 0.0
    for term in terms:
        found = found + term
    return found
