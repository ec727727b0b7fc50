"""Wrong: leaves out the keys behind the last whole block of 32."""

import torch


def attention(q, k, v, o, is_causal):
    length, size = q.shape[2:]
    shared = q.shape[1] // k.shape[1]
    keys, values = (tensor.repeat_interleave(shared, dim=1).float() for tensor in (k, v))
    scores = q.float() @ keys.transpose(2, 3) * size**-0.5
    if is_causal:
        scores.masked_fill_(torch.ones(length, length, dtype=torch.bool, device=q.device).triu(1), float("-inf"))
    whole = max(length // 32 * 32, min(length, 32))
    scores, values = scores[..., :whole], values[:, :, :whole]
    o.copy_(torch.softmax(scores, dim=-1).to(v.dtype).float() @ values)
