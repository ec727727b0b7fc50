"""The scaled product of int8 in Triton: exact tiles in int32, scaled when they are written.

With few tokens the weights stream through once at the speed of the memory, which is what counts; tiles are then as deep
as shared memory allows.
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
    a, b, a_scale, b_scale, c, a_tiles, b_tiles, m, n, k,
    COPIED: tl.constexpr, TILE_M: tl.constexpr, TILE_N: tl.constexpr, TILE_K: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    """COPIED: a_tiles and b_tiles are descriptors: the copy engine fetches tiles, with zeros beyond the edge."""
    first_row, first_column = place(m, n, TILE_M, TILE_N, GROUP)
    row = (first_row + tl.arange(0, TILE_M)).to(tl.int64)
    column = (first_column + tl.arange(0, TILE_N)).to(tl.int64)
    total = tl.zeros((TILE_M, TILE_N), tl.int32)
    for start in range(0, k, TILE_K):
        if COPIED:
            left = a_tiles.load([first_row, start])
            right = b_tiles.load([first_column, start]).T
        else:
            along = start + tl.arange(0, TILE_K)
            known = (along < k)[None, :]
            left = tl.load(a + row[:, None] * k + along[None, :], mask=(row < m)[:, None] & known, other=0)
            right = tl.load(b + column[:, None] * k + along[None, :], mask=(column < n)[:, None] & known, other=0).T
        total = tl.dot(left, right, total, out_dtype=tl.int32)
    by_token = tl.load(a_scale + row, mask=row < m, other=0.0)
    by_channel = tl.load(b_scale + column, mask=column < n, other=0.0)
    result = total.to(tl.float32) * (by_token[:, None] * by_channel[None, :])
    inside = (row < m)[:, None] & (column < n)[None, :]
    tl.store(c + row[:, None] * n + column[None, :], result.to(c.dtype.element_ty), mask=inside)


def matmul_int8(
    a: torch.Tensor, b: torch.Tensor, a_scale: torch.Tensor, b_scale: torch.Tensor, c: torch.Tensor
) -> None:
    """[m, k] int8, [n, k] int8, [m], [n] to [m, n] bfloat16."""
    (m, k), n = a.shape, len(b)
    # Rows, columns and depth of a tile, warps, and stages of the pipeline: what was fastest on an H200.
    if m <= 16:
        tile_m, tile_n, tile_k, warps, stages = 16, 32, 512, 4, 5
    elif m <= 64:
        tile_m, tile_n, tile_k, warps, stages = 64, 128, 256, 4, 4
    else:
        tile_m, tile_n, tile_k, warps, stages = 128, 256, 128, 8, 4
    copied = k % 16 == 0  # rows begin at multiples of 16 bytes
    a_tiles = TensorDescriptor.from_tensor(a, [tile_m, tile_k]) if copied else a
    b_tiles = TensorDescriptor.from_tensor(b, [tile_n, tile_k]) if copied else b
    tile_kernel[(triton.cdiv(m, tile_m) * triton.cdiv(n, tile_n),)](
        a, b, a_scale, b_scale, c, a_tiles, b_tiles, m, n, k,
        COPIED=copied, TILE_M=tile_m, TILE_N=tile_n, TILE_K=tile_k, GROUP=8, num_warps=warps, num_stages=stages,
    )  # fmt: skip
