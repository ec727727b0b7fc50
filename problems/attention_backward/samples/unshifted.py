"""Wrong: the largest score is not subtracted, so that exp() overflows."""

import torch


def attention_backward(dout, q, k, v, dq, dk, dv, is_causal):
    (batch, heads, length, size), groups, dtype = q.shape, k.shape[1], q.dtype
    dout_, q_ = dout.float(), q.float()
    k_, v_ = (tensor.repeat_interleave(heads // groups, dim=1).float() for tensor in (k, v))
    scores = q_ @ k_.transpose(2, 3) * size**-0.5
    if is_causal:
        scores.masked_fill_(torch.ones(length, length, dtype=torch.bool, device=q.device).triu(1), float("-inf"))
    weights = scores.exp() / scores.exp().sum(dim=-1, keepdim=True)
    dweights = dout_ @ v_.transpose(2, 3)
    dscores = weights * (dweights - (weights * dweights).sum(dim=-1, keepdim=True)) * size**-0.5
    dscores = dscores.to(dtype).float()
    dq.copy_(dscores @ k_)
    dk.copy_((dscores.transpose(2, 3) @ q_).view(batch, groups, -1, length, size).sum(dim=2))
    dv.copy_((weights.to(dtype).float().transpose(2, 3) @ dout_).view(batch, groups, -1, length, size).sum(dim=2))
