"""Wrong: the channels' scales go along the rows, and the tokens' along the columns."""
# ruff: noqa: N803 - compile-time arguments are upper case in Triton

import triton
import triton.language as tl


@triton.jit
def tile(a, b, a_scale, b_scale, c, m, n, k, TILE: tl.constexpr):
    row = (tl.program_id(0) * TILE + tl.arange(0, TILE)).to(tl.int64)
    column = (tl.program_id(1) * TILE + tl.arange(0, TILE)).to(tl.int64)
    total = tl.zeros((TILE, TILE), tl.int32)
    for start in range(0, k, TILE):
        along = start + tl.arange(0, TILE)
        left = tl.load(a + row[:, None] * k + along[None, :], mask=(row < m)[:, None] & (along < k)[None, :], other=0)
        right = tl.load(
            b + column[:, None] * k + along[None, :], mask=(column < n)[:, None] & (along < k)[None, :], other=0
        )
        total = tl.dot(left, right.T, total, out_dtype=tl.int32)
    by_token = tl.load(b_scale + row % n, mask=row < m, other=0.0)
    by_channel = tl.load(a_scale + column % m, mask=column < n, other=0.0)
    result = total.to(tl.float32) * by_token[:, None] * by_channel[None, :]
    inside = (row < m)[:, None] & (column < n)[None, :]
    tl.store(c + row[:, None] * n + column[None, :], result.to(tl.bfloat16), mask=inside)


def matmul_int8(a, b, a_scale, b_scale, c):
    (m, k), n = a.shape, len(b)
    tile[(triton.cdiv(m, 64), triton.cdiv(n, 64))](a, b, a_scale, b_scale, c, m, n, k, TILE=64)
