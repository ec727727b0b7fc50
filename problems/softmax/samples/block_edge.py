"""Wrong: the block is one short where the row is one longer than a power of two."""
# ruff: noqa: N803 - compile-time arguments are upper case in Triton

import triton
import triton.language as tl


@triton.jit
def row(x, y, cols, BLOCK: tl.constexpr):
    start = tl.program_id(0).to(tl.int64) * cols
    column = tl.arange(0, BLOCK)
    values = tl.load(x + start + column, mask=column < cols, other=float("-inf"))
    powers = tl.exp(values - tl.max(values, axis=0))
    tl.store(y + start + column, powers / tl.sum(powers, axis=0), mask=column < cols)


def softmax(x, y):
    rows, cols = x.shape
    block = triton.next_power_of_2(max(cols - 1, 1))
    row[(rows,)](x, y, cols, BLOCK=block, num_warps=min(max(block // 1024, 4), 32))
