"""Wrong: programs that share a sum along k each store their part of it, and the last one to store wins."""
# ruff: noqa: N803 - compile-time arguments are upper case in Triton

import triton
import triton.language as tl


@triton.jit
def tile(a, b, c, m, n, k, share, TILE: tl.constexpr):
    row = (tl.program_id(0) * TILE + tl.arange(0, TILE)).to(tl.int64)[:, None]
    column = (tl.program_id(1) * TILE + tl.arange(0, TILE)).to(tl.int64)[None, :]
    total = tl.zeros((TILE, TILE), tl.float32)
    first = tl.program_id(2) * share
    for start in range(first, min(first + share, k), TILE):
        along = start + tl.arange(0, TILE)
        left = tl.load(a + row * k + along[None, :], mask=(row < m) & (along[None, :] < k), other=0.0)
        right = tl.load(b + along[:, None] * n + column, mask=(along[:, None] < k) & (column < n), other=0.0)
        total = tl.dot(left, right, total, input_precision="ieee")
    # Right would be an atomic addition into zeros, or parts in a buffer that a second kernel adds up.
    tl.store(c + row * n + column, total.to(c.dtype.element_ty), mask=(row < m) & (column < n))


def matmul(a, b, c):
    (m, k), n = a.shape, b.shape[1]
    share = triton.cdiv(k, 4 * 64) * 64
    tile[(triton.cdiv(m, 64), triton.cdiv(n, 64), triton.cdiv(k, share))](a, b, c, m, n, k, share, TILE=64)
