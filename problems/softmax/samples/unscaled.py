"""Wrong: the online form without its correction: where the maximum grows, what was summed before keeps the old one."""
# ruff: noqa: N803 - compile-time arguments are upper case in Triton

import triton
import triton.language as tl


@triton.jit
def row(x, y, cols, BLOCK: tl.constexpr):
    x += tl.program_id(0).to(tl.int64) * cols
    y += tl.program_id(0).to(tl.int64) * cols
    top, total = float("-inf"), 0.0
    for start in range(0, cols, BLOCK):
        column = start + tl.arange(0, BLOCK)
        values = tl.load(x + column, mask=column < cols, other=float("-inf"))
        top = tl.maximum(top, tl.max(values, axis=0))
        total += tl.sum(tl.exp(values - tl.where(top == float("-inf"), 0.0, top)), axis=0)
    shift = tl.where(top == float("-inf"), 0.0, top)
    for start in range(0, cols, BLOCK):
        column = start + tl.arange(0, BLOCK)
        values = tl.load(x + column, mask=column < cols, other=float("-inf"))
        tl.store(y + column, tl.exp(values - shift) / total, mask=column < cols)


def softmax(x, y):
    rows, cols = x.shape
    row[(rows,)](x, y, cols, BLOCK=1024)
