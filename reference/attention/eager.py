"""Attention in PyTorch: its own fused kernel, with the heads of keys and values shared by groups."""

import torch


def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, o: torch.Tensor, is_causal: int) -> None:
    """o = softmax(q · kᵀ / √size) · v: [batch, heads, length, size], of k and v with kv_heads heads."""
    grouped = q.shape[1] != k.shape[1]
    o.copy_(torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=bool(is_causal), enable_gqa=grouped))
