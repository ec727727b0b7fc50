"""Right: searches a row k times for the largest, by value and then by index."""
# ruff: noqa: N803 - compile-time arguments are upper case in Triton

import triton
import triton.language as tl


@triton.jit
def row(x, values, indices, cols, k, BLOCK: tl.constexpr):
    start = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, BLOCK)
    left = column < cols
    held = tl.load(x + start * cols + column, mask=left, other=float("-inf")).to(tl.float32)
    for place in range(k):
        largest = tl.max(tl.where(left, held, float("-inf")), axis=0)
        chosen = tl.min(tl.where(left & (held == largest), column, BLOCK), axis=0)
        tl.store(values + start * k + place, largest.to(values.dtype.element_ty))
        tl.store(indices + start * k + place, chosen)
        left = left & (column != chosen)


def topk_ties(x, values, indices, k):
    rows, cols = x.shape
    block = triton.next_power_of_2(cols)
    row[(rows,)](x, values, indices, cols, k, BLOCK=block)
