"""The scaled product of float8 in Triton: the matrix units sum one block of k, and float32 registers the blocks.

Hopper's matrix units add float8 products up in registers of fewer bits than float32 has. Where every block of k has
scales of its own, its sum leaves the matrix units to be scaled, and that is also what keeps it exact; where there is
one scale for all, `max_num_imprecise_acc` asks for the same.
"""
# ruff: noqa: N803 - compile-time arguments are upper case in Triton

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor


@triton.jit
def place(m, n, TILE_M: tl.constexpr, TILE_N: tl.constexpr, GROUP: tl.constexpr):
    """The first row and column of this program's tile; those at work together share rows of a and of b in L2."""
    tiles_n = tl.cdiv(n, TILE_N)
    band = tl.program_id(0) // (GROUP * tiles_n)
    height = min(tl.cdiv(m, TILE_M) - band * GROUP, GROUP)
    within = tl.program_id(0) % (GROUP * tiles_n)
    return (band * GROUP + within % height) * TILE_M, within // height * TILE_N


@triton.jit
def tile_kernel(
    a, b, a_tiles, b_tiles, a_scale, b_scale, c, m, n, k, height, width, blocks, depth,
    COPIED: tl.constexpr, TILE_M: tl.constexpr, TILE_N: tl.constexpr, TILE_K: tl.constexpr, GROUP: tl.constexpr,
    ONE: tl.constexpr, UNIFORM: tl.constexpr,
):  # fmt: skip
    """ONE: there is one scale for all of a, and for b; UNIFORM: one for all columns of a tile.

    COPIED: a_tiles and b_tiles are descriptors, by which the copy engine fetches tiles, with zeros beyond the edge.
    """
    first_row, first_column = place(m, n, TILE_M, TILE_N, GROUP)
    row = (first_row + tl.arange(0, TILE_M)).to(tl.int64)
    column = (first_column + tl.arange(0, TILE_N)).to(tl.int64)
    total = tl.zeros((TILE_M, TILE_N), tl.float32)
    for start in range(0, k, TILE_K):
        if COPIED:
            left = a_tiles.load([first_row, start])
            right = b_tiles.load([first_column, start]).T
        else:
            along = start + tl.arange(0, TILE_K)
            known = (along < k)[None, :]
            left = tl.load(a + row[:, None] * k + along[None, :], mask=(row < m)[:, None] & known, other=0.0)
            right = tl.load(b + column[:, None] * k + along[None, :], mask=(column < n)[:, None] & known, other=0.0).T
        if ONE:
            total = tl.dot(left, right, total, max_num_imprecise_acc=128)
        else:
            block = start // depth
            by_row = tl.load(a_scale + row // height * blocks + block, mask=row < m, other=0.0)
            if UNIFORM:
                by_row *= tl.load(b_scale + first_column // width * blocks + block)
                total += tl.dot(left, right) * by_row[:, None]
            else:
                by_column = tl.load(b_scale + column // width * blocks + block, mask=column < n, other=0.0)
                total += tl.dot(left, right) * (by_row[:, None] * by_column[None, :])
    if ONE:
        total *= tl.load(a_scale) * tl.load(b_scale)
    inside = (row < m)[:, None] & (column < n)[None, :]
    tl.store(c + row[:, None] * n + column[None, :], total.to(c.dtype.element_ty), mask=inside)


def matmul_fp8(a: torch.Tensor, b: torch.Tensor, a_scale: torch.Tensor, b_scale: torch.Tensor, c: torch.Tensor) -> None:
    """[m, k] and [n, k] float8 and their blocks' scales to [m, n] bfloat16."""
    (m, k), n, blocks = a.shape, len(b), a_scale.shape[1]
    depth, width = k // blocks, n // len(b_scale)
    one = a_scale.numel() == b_scale.numel() == 1
    # The largest power of two that divides a block; a tile that reaches beyond the only block reads zeros.
    tile_k = 128 if one else min(128, depth & -depth)
    # Rows and columns of a tile, and stages of the pipeline: what was fastest on an H200.
    tile_m, tile_n, stages = (128, 128, 3) if one else (64, 128, 3) if m > 64 else (64, 64, 6)
    copied = k % 16 == 0  # rows begin at multiples of 16 bytes
    a_tiles = TensorDescriptor.from_tensor(a, [tile_m, tile_k]) if copied else a
    b_tiles = TensorDescriptor.from_tensor(b, [tile_n, tile_k]) if copied else b
    tile_kernel[(triton.cdiv(m, tile_m) * triton.cdiv(n, tile_n),)](
        a, b, a_tiles, b_tiles, a_scale, b_scale, c, m, n, k, m // len(a_scale), width, blocks, depth,
        COPIED=copied, TILE_M=tile_m, TILE_N=tile_n, TILE_K=tile_k, GROUP=8, ONE=one, UNIFORM=width % tile_n == 0,
        num_warps=4, num_stages=stages,
    )  # fmt: skip
