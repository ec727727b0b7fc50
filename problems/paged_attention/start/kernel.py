"""paged_attention in Triton: it runs, and is wrong until `compute` is filled in."""

import triton
import triton.language as tl

# q        [batch, heads, size]           dtype  input
# k_pages  [pages, page, kv_heads, size]  dtype  input
# v_pages  [pages, page, kv_heads, size]  dtype  input
# table    [batch, most_pages]            int32  input
# lengths  [batch]                        int32  input
# o        [batch, heads, size]           dtype  output


@triton.jit
def compute(
    q, k_pages, v_pages, table, lengths, o, batch, heads, size, pages, page, kv_heads, most_pages, o_elements,
    BLOCK: tl.constexpr
):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    # TODO: compute the outputs. Each program has some elements, in row-major order. Divide the work in
    # another way where that suits you better, such as a row for each program.
    tl.store(o + i, tl.zeros((BLOCK,), o.dtype.element_ty), mask=i < o_elements)


def paged_attention(q, k_pages, v_pages, table, lengths, o):
    batch, heads, size = q.shape
    pages, page, kv_heads, size = k_pages.shape
    batch, most_pages = table.shape
    elements = o.numel()
    compute[(triton.cdiv(elements, 1024),)](
        q, k_pages, v_pages, table, lengths, o, batch, heads, size, pages, page, kv_heads, most_pages, elements,
        BLOCK=1024
    )
