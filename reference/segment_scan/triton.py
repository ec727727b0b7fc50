"""Running sums within segments in Triton: each block scans its own elements, then what was open before it is added.

Elements that begin a segment are marked first. A scan over pairs of a mark and a sum starts anew at each mark, as in
Blelloch, "Prefix Sums and Their Applications". A second kernel adds, to the elements before a block's first mark, the
sum that the blocks before it left open: it looks back until a block has a mark. Most blocks have one nearby.
"""
# ruff: noqa: N803 - compile-time arguments are upper case in Triton

import torch
import triton
import triton.language as tl

SMALL_BLOCK, BLOCK = 1024, 2048
WIDE = 1024  # blocks that are looked back upon at a time


@triton.jit
def mark_kernel(offsets, marks, segments, n, BLOCK: tl.constexpr):
    """Empty segments at the end begin at n, where there is no element."""
    segment = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    begin = tl.load(offsets + segment, mask=segment < segments, other=n)
    tl.store(marks + begin, 1, mask=begin < n)


@triton.jit
def joined(mark, total, next_mark, value):
    return mark | next_mark, tl.where(next_mark != 0, value, total + value)


@triton.jit
def block_kernel(x, marks, y, totals, opens, n, BLOCK: tl.constexpr):
    """Scan a block by itself; keep the sum at its end, and how many elements are before its first mark."""
    block = tl.program_id(0)
    within = tl.arange(0, BLOCK)
    element = block.to(tl.int64) * BLOCK + within
    values = tl.load(x + element, mask=element < n, other=0.0)
    mark = tl.load(marks + element, mask=element < n, other=0).to(tl.int32)
    _, sums = tl.associative_scan((mark, values), 0, joined)
    tl.store(y + element, sums, mask=element < n)
    tl.store(totals + block, tl.sum(tl.where(within == BLOCK - 1, sums, 0.0), axis=0))
    tl.store(opens + block, tl.min(tl.where(mark != 0, within, BLOCK), axis=0))


@triton.jit
def carry_kernel(y, totals, opens, n, BLOCK: tl.constexpr, WIDE: tl.constexpr):
    block = tl.program_id(0)
    open_here = tl.load(opens + block)
    if open_here > 0:
        carry = 0.0
        end = block
        while end > 0:
            before = end - WIDE + tl.arange(0, WIDE)
            total = tl.load(totals + before, mask=before >= 0, other=0.0)
            marked = tl.load(opens + before, mask=before >= 0, other=BLOCK) < BLOCK
            last = tl.max(tl.where(marked, before, -1), axis=0)
            carry += tl.sum(tl.where(before >= last, total, 0.0), axis=0)
            end = tl.where(last >= 0, 0, end - WIDE)
        within = tl.arange(0, BLOCK)
        element = block.to(tl.int64) * BLOCK + within
        inside = (within < open_here) & (element < n)
        tl.store(y + element, tl.load(y + element, mask=inside) + carry, mask=inside)


def segment_scan(x: torch.Tensor, offsets: torch.Tensor, y: torch.Tensor) -> None:
    """[n], [segments + 1] int32 to [n]: for each element the sum of its segment up to it."""
    n, segments = len(x), len(offsets) - 1
    block = BLOCK if n > 1 << 20 else SMALL_BLOCK
    blocks = triton.cdiv(n, block)
    marks = torch.zeros(n, dtype=torch.uint8, device=x.device)
    totals = torch.empty(blocks, dtype=torch.float32, device=x.device)
    opens = torch.empty(blocks, dtype=torch.int32, device=x.device)
    mark_kernel[(triton.cdiv(segments, SMALL_BLOCK),)](offsets, marks, segments, n, BLOCK=SMALL_BLOCK)
    block_kernel[(blocks,)](x, marks, y, totals, opens, n, BLOCK=block, num_warps=8)
    carry_kernel[(blocks,)](y, totals, opens, n, BLOCK=block, WIDE=WIDE)
