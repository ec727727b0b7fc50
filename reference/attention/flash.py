"""Attention by PyTorch's kernels of FlashAttention-2, which `eager.py` takes by itself on an A100.

On a newer device PyTorch prefers those of cuDNN, which `eager.py` shows there.
"""

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel


def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, o: torch.Tensor, is_causal: int) -> None:
    """o = softmax(q · kᵀ / √size) · v: [batch, heads, length, size], of k and v with kv_heads heads."""
    grouped = q.shape[1] != k.shape[1]
    # There is none for float32.
    kernels = [SDPBackend.FLASH_ATTENTION] + [SDPBackend.MATH] * (q.dtype is torch.float32)
    with sdpa_kernel(kernels):
        o.copy_(
            torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=bool(is_causal), enable_gqa=grouped)
        )
