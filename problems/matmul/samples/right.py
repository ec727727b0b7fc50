"""Right: one program a tile, sums in float32, masks along all three dimensions."""
# ruff: noqa: N803 - compile-time arguments are upper case in Triton

import triton
import triton.language as tl


@triton.jit
def tile(a, b, c, m, n, k, stop, TILE: tl.constexpr):
    row = (tl.program_id(0) * TILE + tl.arange(0, TILE)).to(tl.int64)[:, None]
    column = (tl.program_id(1) * TILE + tl.arange(0, TILE)).to(tl.int64)[None, :]
    total = tl.zeros((TILE, TILE), tl.float32)
    for start in range(0, stop, TILE):
        along = start + tl.arange(0, TILE)
        left = tl.load(a + row * k + along[None, :], mask=(row < m) & (along[None, :] < k), other=0.0)
        right = tl.load(b + along[:, None] * n + column, mask=(along[:, None] < k) & (column < n), other=0.0)
        total = tl.dot(left, right, total, input_precision="ieee")
    tl.store(c + row * n + column, total.to(c.dtype.element_ty), mask=(row < m) & (column < n))


def matmul(a, b, c):
    (m, k), n = a.shape, b.shape[1]
    tile[(triton.cdiv(m, 64), triton.cdiv(n, 64))](a, b, c, m, n, k, k, TILE=64)
