"""The definition of decode attention over paged keys and values; and which pages each sequence has."""

import torch


def generate(
    generator, batch, heads, kv_heads, size, page, pages, most_pages, dtype, lengths="ragged", shared=0, infinite=False
):
    """Lengths from 1 to most_pages · page, and pages in no order; -1 stands after the last page of a sequence."""
    device, most = generator.device, most_pages * page
    drawn = torch.randint(1, most + 1, (batch // 2,), generator=generator, device=device)
    # Pairs have the same sum, so that a call has the same number of tokens, whatever is drawn.
    ragged = torch.cat([drawn, most + 1 - drawn, drawn.new_full((batch % 2,), (most + 1) // 2)])
    ragged = ragged[torch.randperm(batch, generator=generator, device=device)]
    many = {"ragged": ragged, "full": torch.full_like(ragged, most), "one": torch.ones_like(ragged)}[lengths]
    table = torch.randperm(pages, generator=generator, device=device)[: batch * most_pages].view(batch, most_pages)
    table[:, :shared] = table[0, :shared].clone()
    held = torch.arange(most, device=device).view(most_pages, page) < many[:, None, None]
    made = {"lengths": many.int(), "table": torch.where(held.any(dim=2), table, -1).int()}
    if infinite:
        slots = (table[:, :, None] * page + torch.arange(page, device=device))[held]
        for name in ("k_pages", "v_pages"):
            tensor = torch.full((pages * page, kv_heads, size), torch.inf, dtype=dtype, device=device)
            shape = (len(slots), kv_heads, size)
            tensor[slots] = torch.randn(shape, generator=generator, device=device).to(dtype)
            made[name] = tensor.view(pages, page, kv_heads, size)
    return made


def reference(
    q: torch.Tensor, k_pages: torch.Tensor, v_pages: torch.Tensor, table: torch.Tensor, lengths: torch.Tensor
) -> torch.Tensor:
    """[batch, heads, size], [pages, page, kv_heads, size] twice, [batch, most_pages], [batch] to [batch, heads, size].

    Products, powers and sums in float32.
    """
    wide = torch.promote_types(q.dtype, torch.float32)
    (batch, heads, size), (_, page, kv_heads, _) = q.shape, k_pages.shape
    rows = []
    for sequence in range(batch):
        length = int(lengths[sequence])
        own = table[sequence, : -(-length // page)].to(torch.int64)
        keys, values = (pages[own].flatten(0, 1)[:length].to(wide) for pages in (k_pages, v_pages))
        grouped = q[sequence].to(wide).view(kv_heads, heads // kv_heads, size)
        scores = torch.einsum("hgs,lhs->hgl", grouped, keys) * size**-0.5
        rows.append(torch.einsum("hgl,lhs->hgs", torch.softmax(scores, dim=-1), values).reshape(heads, size))
    return torch.stack(rows).to(q.dtype)
