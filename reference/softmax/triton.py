"""Row-wise softmax in Triton: one program a row, in one block where the row fits, else block by block.

The row's maximum is subtracted before exp(), so that nothing overflows. Where every element is -inf there is no finite
maximum: 0 is subtracted instead, the sum is 0, and 0/0 gives the NaN that the definition asks for.
"""
# ruff: noqa: N803 - compile-time arguments are upper case in Triton

import torch
import triton
import triton.language as tl

# Few sizes, since each is compiled by itself, in 0.1 to 0.2 s. The largest is 32 elements for each of 1024 threads: a
# block of 65536 does not fit the registers, and its row would be read again from wherever they spill to.
BLOCKS = (64, 256, 1024, 4096, 8192, 16384, 32768)
LONG_BLOCK = 16384


@triton.jit
def row_kernel(x, y, cols, BLOCK: tl.constexpr):
    """The row fits into one block: read once, written once."""
    row = tl.program_id(0).to(tl.int64) * cols
    column = tl.arange(0, BLOCK)
    values = tl.load(x + row + column, mask=column < cols, other=float("-inf"))
    top = tl.max(values, axis=0)
    powers = tl.exp(values - tl.where(top == float("-inf"), 0.0, top))
    tl.store(y + row + column, powers / tl.sum(powers, axis=0), mask=column < cols)


@triton.jit
def long_row_kernel(x, y, cols, BLOCK: tl.constexpr):
    """The row is longer than a block: a first pass finds maximum and sum together, a second one writes."""
    row = tl.program_id(0).to(tl.int64) * cols
    # Each lane keeps the maximum and the sum of its own columns; they are combined once, at the end.
    top = tl.full((BLOCK,), float("-inf"), tl.float32)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, cols, BLOCK):
        column = start + tl.arange(0, BLOCK)
        values = tl.load(x + row + column, mask=column < cols, other=float("-inf"))
        higher = tl.maximum(top, values)
        shift = tl.where(higher == float("-inf"), 0.0, higher)
        # What was summed so far stood for exp(v - top), and becomes exp(v - higher).
        total = total * tl.exp(top - shift) + tl.exp(values - shift)
        top = higher
    row_top = tl.max(top, axis=0)
    shift = tl.where(row_top == float("-inf"), 0.0, row_top)
    row_total = tl.sum(total * tl.exp(top - shift), axis=0)
    # Backwards: what was read last is still in L2. What is done with need not stay there.
    last = (cols - 1) // BLOCK * BLOCK
    for back in range(0, cols, BLOCK):
        column = last - back + tl.arange(0, BLOCK)
        inside = column < cols
        values = tl.load(x + row + column, mask=inside, other=float("-inf"), eviction_policy="evict_first")
        powers = tl.exp(values - shift)
        tl.store(y + row + column, powers / row_total, mask=inside, eviction_policy="evict_first")


def softmax(x: torch.Tensor, y: torch.Tensor) -> None:
    """y = softmax of each row of x: [rows, cols] float32 each."""
    rows, cols = x.shape
    # About 16 elements a thread: fewer warps leave the memory idle, more spill.
    if cols > BLOCKS[-1]:
        # The largest program there is, so that few rows are at work at a time, and more of each is in L2 when it is
        # read again.
        long_row_kernel[(rows,)](x, y, cols, BLOCK=LONG_BLOCK, num_warps=LONG_BLOCK // 512)
    else:
        block = next(size for size in BLOCKS if cols <= size)
        warps = 32 if block > 16384 else min(max(block // 512, 1), 16)
        row_kernel[(rows,)](x, y, cols, BLOCK=block, num_warps=warps)
