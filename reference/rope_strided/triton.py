"""The rotary embedding in Triton: one program a token and several heads, which share the row of the table."""
# ruff: noqa: N803 - compile-time arguments are upper case in Triton

import torch
import triton
import triton.language as tl

HEADS = 8


@triton.jit
def heads_kernel(
    q, positions, table, heads, dim, half, token_stride, head_stride, HEADS: tl.constexpr, BLOCK: tl.constexpr
):
    token = tl.program_id(0).to(tl.int64)
    head = (tl.program_id(1) * HEADS + tl.arange(0, HEADS))[:, None]
    column = tl.arange(0, BLOCK)[None, :]
    pair = column < half
    inside = (head < heads) & pair
    row = table + tl.load(positions + token).to(tl.int64) * dim
    cosine = tl.load(row + column, mask=pair, other=0.0).to(tl.float32)
    sine = tl.load(row + half + column, mask=pair, other=0.0).to(tl.float32)
    start = q + token * token_stride + head * head_stride + column
    left = tl.load(start, mask=inside, other=0.0).to(tl.float32)
    right = tl.load(start + half, mask=inside, other=0.0).to(tl.float32)
    tl.store(start, (left * cosine - right * sine).to(q.dtype.element_ty), mask=inside)
    tl.store(start + half, (right * cosine + left * sine).to(q.dtype.element_ty), mask=inside)


def rope_strided(q: torch.Tensor, positions: torch.Tensor, table: torch.Tensor) -> None:
    """q [tokens, heads, dim] in place, turned by the rows of table [1024, dim] at positions [tokens]."""
    tokens, heads, dim = q.shape
    block = max(16, triton.next_power_of_2(dim // 2))
    heads_kernel[(tokens, triton.cdiv(heads, HEADS))](
        q, positions, table, heads, dim, dim // 2, q.stride(0), q.stride(1), HEADS=HEADS, BLOCK=block
    )
