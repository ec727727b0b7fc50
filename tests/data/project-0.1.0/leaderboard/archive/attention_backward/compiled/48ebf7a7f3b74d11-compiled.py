"""The gradients of attention as `torch.compile` makes them from their definition: large matrices are written down."""

import torch

torch._dynamo.config.recompile_limit = 64  # the shapes are static, and every test has its own


@torch.compile(dynamic=False)
def attention_backward(
    dout: torch.Tensor, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor,
    dq: torch.Tensor, dk: torch.Tensor, dv: torch.Tensor, is_causal: int,
) -> None:  # fmt: skip
    """dq [batch, heads, length, size], dk and dv [batch, kv_heads, length, size]."""
    sharing, root = q.shape[1] // k.shape[1], q.shape[3] ** -0.5
    keys, values = k.repeat_interleave(sharing, 1), v.repeat_interleave(sharing, 1)
    scores = (q.float() @ keys.float().mT) * root  # scores of a hundred, rounded to 16 bits, are off by a sixteenth
    if is_causal:
        length = q.shape[2]
        scores = scores.masked_fill(torch.ones(length, length, dtype=torch.bool, device=q.device).triu(1), -torch.inf)
    weights = torch.softmax(scores, dim=-1)
    dweights = (dout @ values.mT).float()
    dscores = (weights * (dweights - (weights * dweights).sum(-1, keepdim=True)) * root).to(q.dtype)
    dq.copy_(dscores @ keys)
    dk.copy_((dscores.mT @ q).float().unflatten(1, (-1, sharing)).sum(2))
    dv.copy_((weights.to(q.dtype).mT @ dout).float().unflatten(1, (-1, sharing)).sum(2))
