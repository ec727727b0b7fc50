"""The definition of the gradients of attention."""

import torch


def reference(
    dout: torch.Tensor, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, is_causal: int
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """dq [batch, heads, length, size], dk and dv [batch, kv_heads, length, size], one head at a time.

    Scores and sums are taken in float32 at the least; what goes into a product is rounded to the dtype of its operands
    first, as fast kernels do.
    """
    length, size = q.shape[2:]
    dtype, wide = q.dtype, torch.promote_types(q.dtype, torch.float32)
    hidden = torch.ones(length, length, dtype=torch.bool, device=q.device).triu(1) if is_causal else None
    dq, dk, dv = torch.empty_like(q, dtype=wide), torch.zeros_like(k, dtype=wide), torch.zeros_like(v, dtype=wide)
    for b in range(q.shape[0]):
        for h in range(q.shape[1]):
            g = h // (q.shape[1] // k.shape[1])
            q_, k_, v_, dout_ = (tensor.to(wide) for tensor in (q[b, h], k[b, g], v[b, g], dout[b, h]))
            scores = (q_ @ k_.T) * size**-0.5
            if hidden is not None:
                scores.masked_fill_(hidden, float("-inf"))
            weights = torch.softmax(scores, dim=-1)
            dv[b, g] += weights.to(dtype).to(wide).T @ dout_
            dweights = dout_ @ v_.T
            dscores = weights * (dweights - (weights * dweights).sum(dim=-1, keepdim=True)) * size**-0.5
            dscores = dscores.to(dtype).to(wide)
            dq[b, h] = dscores @ k_
            dk[b, g] += dscores.T @ q_
    return dq.to(dtype), dk.to(dtype), dv.to(dtype)
