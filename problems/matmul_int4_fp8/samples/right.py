"""Right: one program a tile, both operands made float16 in registers, sums in float32, one rounding at the end."""
# ruff: noqa: N803 - compile-time arguments are upper case in Triton

import triton
import triton.language as tl


@triton.jit
def tile(x, packed, x_scale, w_scale, y, m, n, k, TILE: tl.constexpr):
    row = (tl.program_id(0) * TILE + tl.arange(0, TILE)).to(tl.int64)
    column = (tl.program_id(1) * TILE + tl.arange(0, TILE)).to(tl.int64)
    total = tl.zeros((TILE, TILE), tl.float32)
    for start in range(0, k, TILE):
        along = start + tl.arange(0, TILE)
        inside = (row < m)[:, None] & (along < k)[None, :]
        left = tl.load(x + row[:, None] * k + along[None, :], mask=inside, other=0.0).to(tl.float16)
        inside = (column < n)[:, None] & (along < k)[None, :]
        byte = tl.load(packed + column[:, None] * ((k + 1) // 2) + along[None, :] // 2, mask=inside, other=0)
        half = byte.to(tl.int32) >> (along % 2 * 4)[None, :] & 0xF
        right = ((half ^ 8) - 8).to(tl.float16)
        total = tl.dot(left, right.T, total)
    by_token = tl.load(x_scale + row, mask=row < m, other=0.0)
    by_channel = tl.load(w_scale + column, mask=column < n, other=0.0)
    result = total * by_token[:, None] * by_channel[None, :]
    inside = (row < m)[:, None] & (column < n)[None, :]
    tl.store(y + row[:, None] * n + column[None, :], result.to(tl.bfloat16), mask=inside)


def matmul_int4_fp8(x, packed, x_scale, w_scale, y):
    (m, k), n = x.shape, len(packed)
    tile[(triton.cdiv(m, 64), triton.cdiv(n, 64))](x, packed, x_scale, w_scale, y, m, n, k, TILE=64)
