"""The definition of attention."""

import torch


def reference(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, is_causal: int) -> torch.Tensor:
    """[batch, heads, length, size], twice [batch, kv_heads, length, size], to [batch, heads, length, size].

    One head at a time, so that the scores of a long sequence fit into memory. Scores and sums are taken in float32 at
    the least, and the weights are rounded to the dtype of v before they are multiplied, as fast kernels do.
    """
    length, size = q.shape[2:]
    wide = torch.promote_types(q.dtype, torch.float32)
    hidden = torch.ones(length, length, dtype=torch.bool, device=q.device).triu(1) if is_causal else None
    o = torch.empty_like(q)
    for b in range(q.shape[0]):
        for h in range(q.shape[1]):
            g = h // (q.shape[1] // k.shape[1])
            scores = (q[b, h].to(wide) @ k[b, g].to(wide).T) * size**-0.5
            if hidden is not None:
                scores.masked_fill_(hidden, float("-inf"))
            o[b, h] = (torch.softmax(scores, dim=-1).to(v.dtype).to(wide) @ v[b, g].to(wide)).to(q.dtype)
    return o
