"""The gradients of attention in PyTorch: its fused kernel forward, and autograd back through it."""

import torch


def attention_backward(
    dout: torch.Tensor, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor,
    dq: torch.Tensor, dk: torch.Tensor, dv: torch.Tensor, is_causal: int,
) -> None:  # fmt: skip
    """dq [batch, heads, length, size], dk and dv [batch, kv_heads, length, size]."""
    leaves = [tensor.detach().requires_grad_() for tensor in (q, k, v)]
    grouped = q.shape[1] != k.shape[1]
    with torch.enable_grad():
        o = torch.nn.functional.scaled_dot_product_attention(*leaves, is_causal=bool(is_causal), enable_gqa=grouped)
    for target, gradient in zip((dq, dk, dv), torch.autograd.grad(o, leaves, dout), strict=True):
        target.copy_(gradient)
