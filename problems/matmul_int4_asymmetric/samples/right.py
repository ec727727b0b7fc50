"""Right: one program a tile, weights made wide in registers, each less its group's zero point, sums in float32."""
# ruff: noqa: N803 - compile-time arguments are upper case in Triton

import triton
import triton.language as tl


@triton.jit
def tile(x, packed, scale, zero, y, m, n, k, size, TILE: tl.constexpr):
    row = (tl.program_id(0) * TILE + tl.arange(0, TILE)).to(tl.int64)
    column = (tl.program_id(1) * TILE + tl.arange(0, TILE)).to(tl.int64)
    total = tl.zeros((TILE, TILE), tl.float32)
    for start in range(0, k, TILE):
        along = start + tl.arange(0, TILE)
        inside = (along < k)[:, None] & (column < n)[None, :]
        left = tl.load(x + row[:, None] * k + along[None, :], mask=(row < m)[:, None] & (along < k)[None, :], other=0.0)
        byte = tl.load(packed + column[None, :] * (k // 2) + along[:, None] // 2, mask=inside, other=0)
        half = byte >> (along % 2 * 4)[:, None].to(tl.uint8) & 0xF
        group = column[None, :] * (k // size) + (along // size)[:, None]
        middle = tl.load(zero + group, mask=inside, other=0)
        factor = tl.load(scale + group, mask=inside, other=0.0).to(tl.float32)
        steps = half.to(tl.int32) - middle.to(tl.int32)
        right = (steps.to(tl.float32) * factor).to(x.dtype.element_ty)
        total = tl.dot(left, right, total)
    inside = (row < m)[:, None] & (column < n)[None, :]
    tl.store(y + row[:, None] * n + column[None, :], total.to(y.dtype.element_ty), mask=inside)


def matmul_int4_asymmetric(x, packed, scale, zero, y):
    (m, k), n = x.shape, len(packed)
    tile[(triton.cdiv(m, 64), triton.cdiv(n, 64))](x, packed, scale, zero, y, m, n, k, k // scale.shape[1], TILE=64)
