"""The k largest in Triton: a row stays in registers, and its largest key is taken k times.

A key is a value with its index, in 64 bits: the value above, in an order that whole numbers have too, and below it the
index, negated, so that of equal values the first is the largest key. Each search is then one reduction, and no two keys
are equal.
"""
# ruff: noqa: N803 - compile-time arguments are upper case in Triton

import torch
import triton
import triton.language as tl


@triton.jit
def row_kernel(x, values, indices, cols, k, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, BLOCK)
    inside = column < cols
    # Adding 0 makes 0 of -0, which are equal.
    held = tl.load(x + row * cols + column, mask=inside, other=float("-inf")).to(tl.float32) + 0.0
    bits = held.to(tl.int32, bitcast=True)
    # The larger the magnitude of a negative number, the larger are its bits.
    order = tl.where(bits < 0, bits ^ 0x7FFFFFFF, bits).to(tl.int64)
    none = -0x7FFFFFFFFFFFFFFF
    key = tl.where(inside, order * 0x100000000 + (0x7FFFFFFF - column), none)
    for place in range(k):
        largest = tl.max(key, axis=0)
        chosen = 0x7FFFFFFF - (largest & 0xFFFFFFFF)
        tl.store(indices + row * k + place, chosen.to(tl.int32))
        tl.store(values + row * k + place, tl.load(x + row * cols + chosen))
        key = tl.where(key == largest, none, key)


def topk_ties(x: torch.Tensor, values: torch.Tensor, indices: torch.Tensor, k: int) -> None:
    """The k largest of x [rows, cols] into values [rows, k], and where they are into indices [rows, k]."""
    rows, cols = x.shape
    block = max(32, triton.next_power_of_2(cols))
    row_kernel[(rows,)](x, values, indices, cols, k, BLOCK=block, num_warps=min(max(block // 512, 1), 16))
