"""Right: one program a tile, weights converted in registers, sums in float32, the scale at the end."""
# ruff: noqa: N803 - compile-time arguments are upper case in Triton

import triton
import triton.language as tl


@triton.jit
def tile(x, w, scale, y, m, n, k, TILE: tl.constexpr):
    row = (tl.program_id(0) * TILE + tl.arange(0, TILE)).to(tl.int64)
    column = (tl.program_id(1) * TILE + tl.arange(0, TILE)).to(tl.int64)
    total = tl.zeros((TILE, TILE), tl.float32)
    for start in range(0, k, TILE):
        along = start + tl.arange(0, TILE)
        inside = (row < m)[:, None] & (along < k)[None, :]
        left = tl.load(x + row[:, None] * k + along[None, :], mask=inside, other=0.0)
        inside = (column < n)[:, None] & (along < k)[None, :]
        right = tl.load(w + column[:, None] * k + along[None, :], mask=inside, other=0).to(left.dtype)
        total = tl.dot(left, right.T, total)
    by_channel = tl.load(scale + column, mask=column < n, other=0.0)
    result = total * by_channel[None, :]
    inside = (row < m)[:, None] & (column < n)[None, :]
    tl.store(y + row[:, None] * n + column[None, :], result.to(y.dtype.element_ty), mask=inside)


def matmul_int8_weights(x, w, scale, y):
    (m, k), n = x.shape, len(w)
    tile[(triton.cdiv(m, 64), triton.cdiv(n, 64))](x, w, scale, y, m, n, k, TILE=64)
