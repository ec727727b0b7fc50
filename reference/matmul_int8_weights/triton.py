"""The product with int8 weights in Triton: bytes cross the memory, and become 16-bit numbers in registers.

y is computed as its transpose, weights times tokens: the weights come from registers, from where the matrix units of
Hopper take a left operand as it is. The scale of a channel is that of a whole row of that tile, and comes at the end.
"""
# ruff: noqa: N803 - compile-time arguments are upper case in Triton

import torch
import triton
import triton.language as tl


@triton.jit
def tile_kernel(
    x, w, scale, y, parts, m, n, k,
    TILE_M: tl.constexpr, TILE_N: tl.constexpr, TILE_K: tl.constexpr, GROUP: tl.constexpr, SPLIT: tl.constexpr,
):  # fmt: skip
    """SPLIT programs share the sum of a tile; each writes its part, in float32."""
    tiles_n = tl.cdiv(n, TILE_N)
    band = tl.program_id(0) // (GROUP * tiles_n)
    height = min(tl.cdiv(m, TILE_M) - band * GROUP, GROUP)
    within = tl.program_id(0) % (GROUP * tiles_n)
    row = ((band * GROUP + within % height) * TILE_M + tl.arange(0, TILE_M)).to(tl.int64)
    column = (within // height * TILE_N + tl.arange(0, TILE_N)).to(tl.int64)
    total = tl.zeros((TILE_N, TILE_M), tl.float32)
    for start in range(tl.program_id(1) * TILE_K, k, SPLIT * TILE_K):
        along = start + tl.arange(0, TILE_K)
        known = (along < k)[None, :]
        tokens = tl.load(x + row[:, None] * k + along[None, :], mask=(row < m)[:, None] & known, other=0.0)
        weights = tl.load(w + column[:, None] * k + along[None, :], mask=(column < n)[:, None] & known, other=0)
        total = tl.dot(weights.to(tokens.dtype), tokens.T, total)
    inside = (column < n)[:, None] & (row < m)[None, :]
    at = row[None, :] * n + column[:, None]
    if SPLIT == 1:
        by_channel = tl.load(scale + column, mask=column < n, other=0.0)[:, None]
        tl.store(y + at, (total * by_channel).to(y.dtype.element_ty), mask=inside)
    else:
        tl.store(parts + tl.program_id(1).to(tl.int64) * m * n + at, total, mask=inside)


@triton.jit
def add_kernel(parts, scale, y, m, n, SPLIT: tl.constexpr, BLOCK: tl.constexpr):
    element = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = element < m * n
    total = tl.zeros((BLOCK,), tl.float32)
    for part in tl.static_range(SPLIT):
        total += tl.load(parts + part * m * n + element, mask=inside, other=0.0)
    by_channel = tl.load(scale + element % n, mask=inside, other=0.0)
    tl.store(y + element, (total * by_channel).to(y.dtype.element_ty), mask=inside)


def matmul_int8_weights(x: torch.Tensor, w: torch.Tensor, scale: torch.Tensor, y: torch.Tensor) -> None:
    """[m, k], [n, k] int8, [n] float32 to [m, n]."""
    (m, k), n = x.shape, len(w)
    # Tokens, channels and depth of a tile, warps, and parts of k; they follow those of matmul_int4.
    if m <= 16:
        tile_m, tile_n, tile_k, warps, split = 16, 64, 256, 4, 4
    elif m <= 64:
        tile_m, tile_n, tile_k, warps, split = 64, 128, 128, 4, 8
    else:
        tile_m, tile_n, tile_k, warps, split = 128, 128, 64, 8, 1
    parts = y if split == 1 else torch.empty(split, m, n, dtype=torch.float32, device=x.device)
    tile_kernel[(triton.cdiv(m, tile_m) * triton.cdiv(n, tile_n), split)](
        x, w, scale, y, parts, m, n, k,
        TILE_M=tile_m, TILE_N=tile_n, TILE_K=tile_k, GROUP=8, SPLIT=split, num_warps=warps, num_stages=3,
    )  # fmt: skip
    if split > 1:
        add_kernel[(triton.cdiv(m * n, 1024),)](parts, scale, y, m, n, SPLIT=split, BLOCK=1024)
