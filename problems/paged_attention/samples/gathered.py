"""Right: all pages of all sequences are gathered, and what is beyond a length is masked."""

import torch


def paged_attention(q, k_pages, v_pages, table, lengths, o):
    (batch, heads, size), kv_heads = q.shape, k_pages.shape[2]
    own = table.clamp(min=0).long()
    keys, values = (pages[own].flatten(1, 2).transpose(1, 2).float() for pages in (k_pages, v_pages))
    held = torch.arange(keys.shape[2], device=q.device) < lengths[:, None]
    values = torch.where(held[:, None, :, None], values, 0.0)
    scores = q.float().view(batch, kv_heads, heads // kv_heads, size) @ keys.transpose(2, 3) * size**-0.5
    scores = torch.where(held[:, None, None], scores, float("-inf"))
    o.copy_((torch.softmax(scores, dim=-1) @ values).view(batch, heads, size))
