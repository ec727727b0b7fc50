"""Right: one program a token and head."""
# ruff: noqa: N803 - compile-time arguments are upper case in Triton

import triton
import triton.language as tl


@triton.jit
def one_head(q, positions, table, token_stride, head_stride, dim, half, BLOCK: tl.constexpr):
    token, head = tl.program_id(0).to(tl.int64), tl.program_id(1)
    column = tl.arange(0, BLOCK)
    inside = column < half
    row = table + tl.load(positions + token).to(tl.int64) * dim
    cosine = tl.load(row + column, mask=inside).to(tl.float32)
    sine = tl.load(row + half + column, mask=inside).to(tl.float32)
    start = q + token * token_stride + head * head_stride
    left = tl.load(start + column, mask=inside).to(tl.float32)
    right = tl.load(start + half + column, mask=inside).to(tl.float32)
    tl.store(start + column, (left * cosine - right * sine).to(q.dtype.element_ty), mask=inside)
    tl.store(start + half + column, (right * cosine + left * sine).to(q.dtype.element_ty), mask=inside)


def rope_strided(q, positions, table):
    tokens, heads, dim = q.shape
    half = dim // 2
    block = triton.next_power_of_2(half)
    one_head[(tokens, heads)](q, positions, table, q.stride(0), q.stride(1), dim, half, BLOCK=block)
