"""Wrong: the scores are not divided by the square root of the size."""

import torch


def attention(q, k, v, o, is_causal):
    length = q.shape[2]
    shared = q.shape[1] // k.shape[1]
    keys, values = (tensor.repeat_interleave(shared, dim=1).float() for tensor in (k, v))
    scores = q.float() @ keys.transpose(2, 3)
    if is_causal:
        scores.masked_fill_(torch.ones(length, length, dtype=torch.bool, device=q.device).triu(1), float("-inf"))
    o.copy_(torch.softmax(scores, dim=-1).to(v.dtype).float() @ values)
