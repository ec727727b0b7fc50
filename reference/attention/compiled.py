"""Attention as `torch.compile` makes it from its definition: the baseline of those who write no kernel at all."""

import torch

torch._dynamo.config.recompile_limit = 64  # the shapes are static, and every test has its own


@torch.compile(dynamic=False)
def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, o: torch.Tensor, is_causal: int) -> None:
    """o = softmax(q · kᵀ / √size) · v: [batch, heads, length, size], of k and v with kv_heads heads."""
    o.copy_(torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=bool(is_causal), enable_gqa=True))
