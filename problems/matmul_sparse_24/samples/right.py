"""Right: the weights of a tile are made dense in registers, each place of a group by comparison with its indices."""
# ruff: noqa: N803 - compile-time arguments are upper case in Triton

import triton
import triton.language as tl


@triton.jit
def tile(x, values, indices, y, m, n, k, stop, TILE: tl.constexpr):
    row = (tl.program_id(0) * TILE + tl.arange(0, TILE)).to(tl.int64)[:, None]
    column = (tl.program_id(1) * TILE + tl.arange(0, TILE)).to(tl.int64)[None, :]
    total = tl.zeros((TILE, TILE), tl.float32)
    for start in range(0, stop, TILE):
        along = start + tl.arange(0, TILE)
        group, place = along[:, None] // 4, along[:, None] % 4
        left = tl.load(x + row * k + along[None, :], mask=(row < m) & (along[None, :] < k), other=0.0)
        known = (column < n) & (along[:, None] < k)
        nibble = tl.load(indices + column * (k // 8) + group // 2, mask=known, other=0) >> (4 * (group % 2)) & 0xF
        first = tl.load(values + column * (k // 2) + 2 * group, mask=known, other=0.0)
        second = tl.load(values + column * (k // 2) + 2 * group + 1, mask=known, other=0.0)
        right = tl.where(nibble & 3 == place, first, tl.where(nibble >> 2 == place, second, 0.0))
        total = tl.dot(left, right, total)
    tl.store(y + row * n + column, total.to(y.dtype.element_ty), mask=(row < m) & (column < n))


def matmul_sparse_24(x, values, indices):
    (m, k), n = x.shape, len(values)
    y = x.new_empty(m, n)
    tile[(triton.cdiv(m, 64), triton.cdiv(n, 64))](x, values, indices, y, m, n, k, k, TILE=64)
    return y
