"""Wrong: the block is one short where the row is one longer than a power of two."""
# ruff: noqa: N803 - compile-time arguments are upper case in Triton

import triton
import triton.language as tl


@triton.jit
def row(x, weight, bias, y, cols, eps, BLOCK: tl.constexpr):
    start = tl.program_id(0).to(tl.int64) * cols
    column = tl.arange(0, BLOCK)
    inside = column < cols
    values = tl.load(x + start + column, mask=inside, other=0.0).to(tl.float32)
    centred = tl.where(inside, values - tl.sum(values, axis=0) / cols, 0.0)
    scale = tl.rsqrt(tl.sum(centred * centred, axis=0) / cols + eps)
    w = tl.load(weight + column, mask=inside, other=0.0).to(tl.float32)
    b = tl.load(bias + column, mask=inside, other=0.0).to(tl.float32)
    tl.store(y + start + column, (centred * scale * w + b).to(y.dtype.element_ty), mask=inside)


def layernorm(x, weight, bias, y, eps):
    rows, cols = x.shape
    block = triton.next_power_of_2(max(cols - 1, 1))
    row[(rows,)](x, weight, bias, y, cols, eps, BLOCK=block, num_warps=min(max(block // 1024, 4), 32))
