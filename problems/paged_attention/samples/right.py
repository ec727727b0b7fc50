"""Right, and slow: one sequence after the other."""

import torch


def paged_attention(q, k_pages, v_pages, table, lengths, o):
    (batch, heads, size), (_, page, kv_heads, _) = q.shape, k_pages.shape
    for sequence in range(batch):
        length = int(lengths[sequence])
        own = table[sequence, : -(-length // page)].long()
        keys, values = (pages[own].flatten(0, 1)[:length] for pages in (k_pages, v_pages))
        keys, values = (each.repeat_interleave(heads // kv_heads, dim=1).float() for each in (keys, values))
        scores = torch.einsum("hs,lhs->hl", q[sequence].float(), keys) * size**-0.5
        o[sequence] = torch.einsum("hl,lhs->hs", torch.softmax(scores, dim=-1), values)
