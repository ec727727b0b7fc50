"""Decode attention over pages as `torch.compile` makes it: the baseline of those who write no kernel at all.

All pages of all sequences are gathered, and what is beyond a length is masked.
"""

import torch

torch._dynamo.config.recompile_limit = 64  # the shapes are static, and every test has its own


@torch.compile(dynamic=False)
def paged_attention(
    q: torch.Tensor,
    k_pages: torch.Tensor,
    v_pages: torch.Tensor,
    table: torch.Tensor,
    lengths: torch.Tensor,
    o: torch.Tensor,
) -> None:
    """[batch, heads, size], [pages, page, kv_heads, size], [batch, most_pages], [batch] to [batch, heads, size]."""
    (batch, heads, size), kv_heads = q.shape, k_pages.shape[2]
    own = table.clamp(min=0).to(torch.int64)
    keys, values = (pages[own].flatten(1, 2).transpose(1, 2) for pages in (k_pages, v_pages))
    held = (torch.arange(keys.shape[2], device=q.device) < lengths[:, None])[:, None, :]
    # What a sequence does not hold may be infinite, and infinity times 0 is NaN.
    values = torch.where(held[..., None], values, 0.0)
    grouped = q.view(batch, kv_heads, heads // kv_heads, size)
    scores = (grouped.float() @ keys.float().transpose(2, 3)) * size**-0.5
    weights = torch.softmax(torch.where(held[:, :, None], scores, -torch.inf), dim=-1)
    o.copy_((weights.to(values.dtype) @ values).view(batch, heads, size))
