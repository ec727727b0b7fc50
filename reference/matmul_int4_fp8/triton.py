"""The product of float8 and int4 in Triton: both become float16 in registers, where every value and product is exact.

float8 products would run at twice the rate, but Hopper's matrix units add them up in registers of fewer bits. y is
computed as its transpose, weights times tokens: the weights come from registers, from where the matrix units take a
left operand as it is. A byte holds neighbours along k, so low and high halves are interleaved again.
"""
# ruff: noqa: N803 - compile-time arguments are upper case in Triton

import torch
import triton
import triton.language as tl


@triton.jit
def tile_kernel(
    x, packed, x_scale, w_scale, y, parts, m, n, k, nbytes,
    TILE_M: tl.constexpr, TILE_N: tl.constexpr, BYTES: tl.constexpr, GROUP: tl.constexpr, SPLIT: tl.constexpr,
):  # fmt: skip
    """SPLIT programs share the sum of a tile, BYTES a step; each writes its part, in float32."""
    tiles_n = tl.cdiv(n, TILE_N)
    band = tl.program_id(0) // (GROUP * tiles_n)
    height = min(tl.cdiv(m, TILE_M) - band * GROUP, GROUP)
    within = tl.program_id(0) % (GROUP * tiles_n)
    row = ((band * GROUP + within % height) * TILE_M + tl.arange(0, TILE_M)).to(tl.int64)
    column = (within // height * TILE_N + tl.arange(0, TILE_N)).to(tl.int64)
    total = tl.zeros((TILE_N, TILE_M), tl.float32)
    for start in range(tl.program_id(1) * BYTES, nbytes, SPLIT * BYTES):
        byte = start + tl.arange(0, BYTES)
        along = 2 * start + tl.arange(0, 2 * BYTES)
        inside = (row < m)[:, None] & (along < k)[None, :]
        tokens = tl.load(x + row[:, None] * k + along[None, :], mask=inside, other=0.0).to(tl.float16)
        inside = (column < n)[:, None] & (byte < nbytes)[None, :]
        both = tl.load(packed + column[:, None] * nbytes + byte[None, :], mask=inside, other=0)
        low = (both << 4).to(tl.int8, bitcast=True) >> 4  # to the right with the sign
        high = both.to(tl.int8, bitcast=True) >> 4
        weights = tl.interleave(low, high).to(tl.float16)
        total = tl.dot(weights, tokens.T, total)  # beyond an odd k the token is 0
    inside = (column < n)[:, None] & (row < m)[None, :]
    at = row[None, :] * n + column[:, None]
    if SPLIT == 1:
        by_token = tl.load(x_scale + row, mask=row < m, other=0.0)[None, :]
        by_channel = tl.load(w_scale + column, mask=column < n, other=0.0)[:, None]
        tl.store(y + at, (total * by_token * by_channel).to(y.dtype.element_ty), mask=inside)
    else:
        tl.store(parts + tl.program_id(1).to(tl.int64) * m * n + at, total, mask=inside)


@triton.jit
def add_kernel(parts, x_scale, w_scale, y, m, n, SPLIT: tl.constexpr, BLOCK: tl.constexpr):
    element = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = element < m * n
    total = tl.zeros((BLOCK,), tl.float32)
    for part in tl.static_range(SPLIT):
        total += tl.load(parts + part * m * n + element, mask=inside, other=0.0)
    by_token = tl.load(x_scale + element // n, mask=inside, other=0.0)
    by_channel = tl.load(w_scale + element % n, mask=inside, other=0.0)
    tl.store(y + element, (total * by_token * by_channel).to(y.dtype.element_ty), mask=inside)


def matmul_int4_fp8(
    x: torch.Tensor, packed: torch.Tensor, x_scale: torch.Tensor, w_scale: torch.Tensor, y: torch.Tensor
) -> None:
    """[m, k] float8, [n, ceil(k / 2)] uint8, [m], [n] to [m, n] bfloat16."""
    (m, k), (n, nbytes) = x.shape, packed.shape
    # Tokens, channels and bytes of a tile, warps, and parts of k; they follow those of matmul_int4.
    if m <= 16:
        tile_m, tile_n, tile_bytes, warps, split = 16, 64, 128, 4, 4
    elif m <= 64:
        tile_m, tile_n, tile_bytes, warps, split = 64, 128, 64, 4, 8
    else:
        tile_m, tile_n, tile_bytes, warps, split = 128, 128, 32, 8, 1
    parts = y if split == 1 else torch.empty(split, m, n, dtype=torch.float32, device=x.device)
    tile_kernel[(triton.cdiv(m, tile_m) * triton.cdiv(n, tile_n), split)](
        x, packed, x_scale, w_scale, y, parts, m, n, k, nbytes,
        TILE_M=tile_m, TILE_N=tile_n, BYTES=tile_bytes, GROUP=8, SPLIT=split, num_warps=warps, num_stages=3,
    )  # fmt: skip
    if split > 1:
        add_kernel[(triton.cdiv(m * n, 1024),)](parts, x_scale, w_scale, y, m, n, SPLIT=split, BLOCK=1024)
