"""Wrong: the scales are applied after the whole sum, and those of the last block are all that is left."""
# ruff: noqa: N803 - compile-time arguments are upper case in Triton

import triton
import triton.language as tl


@triton.jit
def tile(a, b, a_scale, b_scale, c, m, n, k, rows, cols, depth, TILE: tl.constexpr, STRIP: tl.constexpr):
    row = (tl.program_id(0) * TILE + tl.arange(0, TILE)).to(tl.int64)
    column = (tl.program_id(1) * TILE + tl.arange(0, TILE)).to(tl.int64)
    total = tl.zeros((TILE, TILE), tl.float32)
    by_row, by_column = tl.zeros((TILE,), tl.float32), tl.zeros((TILE,), tl.float32)
    for block in range(k // depth):
        by_row = tl.load(a_scale + row // rows * (k // depth) + block, mask=row < m, other=0.0)
        by_column = tl.load(b_scale + column // cols * (k // depth) + block, mask=column < n, other=0.0)
        for start in range(0, depth, STRIP):
            within = start + tl.arange(0, STRIP)
            known, along = (within < depth)[None, :], block * depth + within[None, :]
            left = tl.load(a + row[:, None] * k + along, mask=(row < m)[:, None] & known, other=0.0)
            right = tl.load(b + column[:, None] * k + along, mask=(column < n)[:, None] & known, other=0.0)
            total += tl.dot(left, right.T)
    total *= by_row[:, None] * by_column[None, :]
    inside = (row < m)[:, None] & (column < n)[None, :]
    tl.store(c + row[:, None] * n + column[None, :], total.to(tl.bfloat16), mask=inside)


def matmul_fp8(a, b, a_scale, b_scale, c):
    (m, k), n, (high, deep) = a.shape, len(b), a_scale.shape
    grid = (triton.cdiv(m, 64), triton.cdiv(n, 64))
    tile[grid](a, b, a_scale, b_scale, c, m, n, k, m // high, n // len(b_scale), k // deep, TILE=64, STRIP=64)
