"""Right: one program for 16 rows, weights widened in registers, sums in float32, one rounding at the end."""
# ruff: noqa: N803 - compile-time arguments are upper case in Triton

import triton
import triton.language as tl


@triton.jit
def rows(w, scale, x, y, n, k, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    row = (tl.program_id(0) * ROWS + tl.arange(0, ROWS)).to(tl.int64)
    total = tl.zeros((ROWS,), tl.float32)
    for start in range(0, k, BLOCK):
        along = start + tl.arange(0, BLOCK)
        inside = (row < n)[:, None] & (along < k)[None, :]
        weights = tl.load(w + row[:, None] * k + along[None, :], mask=inside, other=0).to(tl.float32)
        values = tl.load(x + along, mask=along < k, other=0.0).to(tl.float32)
        total += tl.sum(weights * values[None, :], axis=1)
    total *= tl.load(scale + row, mask=row < n, other=0.0)
    tl.store(y + row, total.to(tl.float16), mask=row < n)


def gemv_int8(w, scale, x, y):
    n, k = w.shape
    rows[(triton.cdiv(n, 16),)](w, scale, x, y, n, k, ROWS=16, BLOCK=256)
