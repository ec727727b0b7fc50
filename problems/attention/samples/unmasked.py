"""Wrong: queries see the keys that come after them."""

import torch


def attention(q, k, v, o, is_causal):
    size = q.shape[3]
    shared = q.shape[1] // k.shape[1]
    keys, values = (tensor.repeat_interleave(shared, dim=1).float() for tensor in (k, v))
    scores = q.float() @ keys.transpose(2, 3) * size**-0.5
    o.copy_(torch.softmax(scores, dim=-1).to(v.dtype).float() @ values)
