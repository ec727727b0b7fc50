"""Decode attention over pages in Triton, after Dao et al., "Flash-Decoding for long-context inference".

A program holds the queries of one sequence that share a head of keys, and walks over a part of the sequence with a
running maximum and a running sum. Parts are equal in length, so that a long sequence keeps as many programs busy as it
needs, and those behind a sequence's end have nothing to do. A second kernel puts the parts of each sequence together.
"""
# ruff: noqa: N803 - compile-time arguments are upper case in Triton

import torch
import triton
import triton.language as tl

LOG2_E = 1.4426950408889634
TILE = 64  # tokens at a time
PROGRAMS = 1024  # about as many as a large device runs at once


@triton.jit
def part_kernel(
    q, k_pages, v_pages, table, lengths, sums, tops, totals, scale, most_pages, kv_heads, page, part, parts,
    GROUP: tl.constexpr, M: tl.constexpr, N: tl.constexpr, SIZE: tl.constexpr,
):  # fmt: skip
    """Attention to the tokens of one part: its weighted sum, not yet divided, its maximum and its sum of weights."""
    sequence, kv_head, number = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    length = tl.load(lengths + sequence)
    first = number * part
    last = tl.minimum(first + part, length)
    query, at = tl.arange(0, M), tl.arange(0, SIZE)
    inside = query < GROUP
    row = (sequence * kv_heads + kv_head) * GROUP + query
    mine = tl.load(q + row[:, None] * SIZE + at[None, :], mask=inside[:, None], other=0.0)
    result = tl.zeros((M, SIZE), tl.float32)
    top = tl.full((M,), float("-inf"), tl.float32)
    total = tl.zeros((M,), tl.float32)
    for start in range(first, last, N):
        token = start + tl.arange(0, N)
        held = token < last
        index = tl.load(table + sequence * most_pages + token // page, mask=held, other=0).to(tl.int64)
        place = ((index * page + token % page) * kv_heads + kv_head)[:, None] * SIZE + at[None, :]
        keys = tl.load(k_pages + place, mask=held[:, None], other=0.0)
        scores = tl.dot(mine, keys.T, input_precision="ieee") * scale
        scores = tl.where(held[None, :], scores, float("-inf"))
        higher = tl.maximum(top, tl.max(scores, axis=1))
        weights = tl.exp2(scores - higher[:, None])
        shrink = tl.exp2(top - higher)
        total = total * shrink + tl.sum(weights, axis=1)
        values = tl.load(v_pages + place, mask=held[:, None], other=0.0)
        result = tl.dot(weights.to(values.dtype), values, result * shrink[:, None], input_precision="ieee")
        top = higher
    out = row * parts + number
    tl.store(sums + out[:, None] * SIZE + at[None, :], result, mask=inside[:, None])
    tl.store(tops + out, top, mask=inside)
    tl.store(totals + out, total, mask=inside)


@triton.jit
def join_kernel(sums, tops, totals, lengths, o, heads, part, parts, SIZE: tl.constexpr):
    """The parts of one head of one sequence, each weighted by how far its maximum is below the largest."""
    row = tl.program_id(0)
    used = tl.cdiv(tl.load(lengths + row // heads), part)
    at = tl.arange(0, SIZE)
    result = tl.zeros((SIZE,), tl.float32)
    top, total = float("-inf"), 0.0
    for number in range(used):
        its_top = tl.load(tops + row * parts + number)
        higher = tl.maximum(top, its_top)
        shrink, share = tl.exp2(top - higher), tl.exp2(its_top - higher)
        result = result * shrink + share * tl.load(sums + (row * parts + number) * SIZE + at)
        total = total * shrink + share * tl.load(totals + row * parts + number)
        top = higher
    tl.store(o + row * SIZE + at, (result / total).to(o.dtype.element_ty))


def paged_attention(
    q: torch.Tensor,
    k_pages: torch.Tensor,
    v_pages: torch.Tensor,
    table: torch.Tensor,
    lengths: torch.Tensor,
    o: torch.Tensor,
) -> None:
    """[batch, heads, size], [pages, page, kv_heads, size], [batch, most_pages], [batch] to [batch, heads, size]."""
    (batch, heads, size), (_, page, kv_heads, _) = q.shape, k_pages.shape
    most, group = table.shape[1] * page, heads // kv_heads
    wanted = min(triton.cdiv(PROGRAMS, batch * kv_heads), triton.cdiv(most, TILE))
    part = triton.cdiv(triton.cdiv(most, wanted), TILE) * TILE
    parts = triton.cdiv(most, part)
    sums = torch.empty(batch * heads, parts, size, dtype=torch.float32, device=q.device)
    tops, totals = torch.empty(2, batch * heads, parts, dtype=torch.float32, device=q.device)
    part_kernel[(batch, kv_heads, parts)](
        q, k_pages, v_pages, table, lengths, sums, tops, totals, size**-0.5 * LOG2_E, table.shape[1], kv_heads, page,
        part, parts, GROUP=group, M=max(16, triton.next_power_of_2(group)), N=TILE, SIZE=size,
    )  # fmt: skip
    join_kernel[(batch * heads,)](sums, tops, totals, lengths, o, heads, part, parts, SIZE=size)
