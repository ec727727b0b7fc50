"""Decode attention over pages in PyTorch: all pages are gathered, and what is beyond a length is masked."""

import torch
from torch.nn.functional import scaled_dot_product_attention


def paged_attention(
    q: torch.Tensor,
    k_pages: torch.Tensor,
    v_pages: torch.Tensor,
    table: torch.Tensor,
    lengths: torch.Tensor,
    o: torch.Tensor,
) -> None:
    """[batch, heads, size], [pages, page, kv_heads, size], [batch, most_pages], [batch] to [batch, heads, size]."""
    own = table.clamp(min=0).to(torch.int64)
    keys, values = (pages[own].flatten(1, 2).transpose(1, 2) for pages in (k_pages, v_pages))
    held = (torch.arange(keys.shape[2], device=q.device) < lengths[:, None])[:, None, :, None]
    # What a sequence does not hold may be infinite, and infinity times 0 is NaN.
    keys, values = (torch.where(held, tensor, 0.0) for tensor in (keys, values))
    mask = held.transpose(2, 3)
    o.copy_(scaled_dot_product_attention(q[:, :, None], keys, values, attn_mask=mask, enable_gqa=True)[:, :, 0])
