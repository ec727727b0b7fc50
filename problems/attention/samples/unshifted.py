"""Wrong: the largest score is not subtracted, so that exp() overflows."""

import torch


def attention(q, k, v, o, is_causal):
    length, size = q.shape[2:]
    shared = q.shape[1] // k.shape[1]
    keys, values = (tensor.repeat_interleave(shared, dim=1).float() for tensor in (k, v))
    scores = q.float() @ keys.transpose(2, 3) * size**-0.5
    if is_causal:
        scores.masked_fill_(torch.ones(length, length, dtype=torch.bool, device=q.device).triu(1), float("-inf"))
    o.copy_((scores.exp() / scores.exp().sum(dim=-1, keepdim=True)).to(v.dtype).float() @ values)
