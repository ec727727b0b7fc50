"""The scaled product of float8 in Triton: the matrix units sum one block of k, and float32 registers the blocks.

Hopper's matrix units add float8 products up with 14 bits. So after each block its sum is scaled and added in float32; where there is one
scale for all of k, every 128 products are a block all the same.
"""
# ruff: noqa: N803 - compile-time arguments are upper case in Triton

import torch
import triton
import triton.language as tl


@triton.jit
def tile_kernel(
    a, b, a_scale, b_scale, c, m, n, k, height, width, blocks, depth,
    TILE_M: tl.constexpr, TILE_N: tl.constexpr, TILE_K: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    # Programs run in bands of GROUP rows of tiles: those at work together share rows of a and of b in L2.
    tiles_n = tl.cdiv(n, TILE_N)
    band = tl.program_id(0) // (GROUP * tiles_n)
    tall = min(tl.cdiv(m, TILE_M) - band * GROUP, GROUP)
    within = tl.program_id(0) % (GROUP * tiles_n)
    row = ((band * GROUP + within % tall) * TILE_M + tl.arange(0, TILE_M)).to(tl.int64)
    column = (within // tall * TILE_N + tl.arange(0, TILE_N)).to(tl.int64)
    total = tl.zeros((TILE_M, TILE_N), tl.float32)
    for block in range(0, blocks):
        part = tl.zeros((TILE_M, TILE_N), tl.float32)
        for start in range(block * depth, (block + 1) * depth, TILE_K):
            along = start + tl.arange(0, TILE_K)
            inside = along < (block + 1) * depth
            left = tl.load(a + row[:, None] * k + along[None, :], mask=(row < m)[:, None] & inside[None, :], other=0.0)
            right = tl.load(b + column[None, :] * k + along[:, None], mask=(column < n)[None, :] & inside[:, None], other=0.0)
            part += tl.dot(left, right)
        left_scale = tl.load(a_scale + row // height * blocks + block, mask=row < m, other=0.0)
        right_scale = tl.load(b_scale + column // width * blocks + block, mask=column < n, other=0.0)
        total += part * left_scale[:, None] * right_scale[None, :]
    tl.store(
        c + row[:, None] * n + column[None, :], total.to(c.dtype.element_ty),
        mask=(row < m)[:, None] & (column < n)[None, :],
    )  # fmt: skip


def matmul_fp8(a: torch.Tensor, b: torch.Tensor, a_scale: torch.Tensor, b_scale: torch.Tensor, c: torch.Tensor) -> None:
    """[m, k] and [n, k] float8 and their blocks' scales to [m, n] bfloat16."""
    (m, k), n, blocks = a.shape, len(b), a_scale.shape[1]
    tile_m, tile_n, warps = (64, 128, 4) if m <= 64 else (128, 128, 8)
    grid = (triton.cdiv(m, tile_m) * triton.cdiv(n, tile_n),)
    tile_kernel[grid](
        a, b, a_scale, b_scale, c, m, n, k, m // len(a_scale), n // len(b_scale), blocks, k // blocks,
        TILE_M=tile_m, TILE_N=tile_n, TILE_K=128, GROUP=8, num_warps=warps, num_stages=4,
    )  # fmt: skip
