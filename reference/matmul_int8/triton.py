"""The scaled product of int8 in Triton: exact tiles in int32, scaled when they are written.

With few tokens the tiles of c do not fill the device, so narrow ones are taken: the weights then stream at the speed of the
memory, which is what counts.
"""
# ruff: noqa: N803 - compile-time arguments are upper case in Triton

import torch
import triton
import triton.language as tl


@triton.jit
def tile_kernel(
    a, b, a_scale, b_scale, c, m, n, k,
    TILE_M: tl.constexpr, TILE_N: tl.constexpr, TILE_K: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    # Programs run in bands of GROUP rows of tiles: those at work together share rows of a and of b in L2.
    tiles_n = tl.cdiv(n, TILE_N)
    band = tl.program_id(0) // (GROUP * tiles_n)
    height = min(tl.cdiv(m, TILE_M) - band * GROUP, GROUP)
    within = tl.program_id(0) % (GROUP * tiles_n)
    row = ((band * GROUP + within % height) * TILE_M + tl.arange(0, TILE_M)).to(tl.int64)
    column = (within // height * TILE_N + tl.arange(0, TILE_N)).to(tl.int64)
    total = tl.zeros((TILE_M, TILE_N), tl.int32)
    for start in range(0, k, TILE_K):
        along = start + tl.arange(0, TILE_K)
        left = tl.load(a + row[:, None] * k + along[None, :], mask=(row < m)[:, None] & (along < k)[None, :], other=0)
        right = tl.load(b + column[None, :] * k + along[:, None], mask=(column < n)[None, :] & (along < k)[:, None], other=0)
        total = tl.dot(left, right, total, out_dtype=tl.int32)
    scales = tl.load(a_scale + row, mask=row < m, other=0.0)[:, None] * tl.load(b_scale + column, mask=column < n, other=0.0)
    inside = (row < m)[:, None] & (column < n)[None, :]
    tl.store(c + row[:, None] * n + column[None, :], (total.to(tl.float32) * scales).to(c.dtype.element_ty), mask=inside)


def matmul_int8(
    a: torch.Tensor, b: torch.Tensor, a_scale: torch.Tensor, b_scale: torch.Tensor, c: torch.Tensor
) -> None:
    """[m, k] int8, [n, k] int8, [m], [n] to [m, n] bfloat16."""
    (m, k), n = a.shape, len(b)
    if m <= 16:
        tile_m, tile_n, tile_k, warps, stages = 16, 32, 256, 4, 5
    elif m <= 64:
        tile_m, tile_n, tile_k, warps, stages = 64, 64, 128, 4, 5
    else:
        tile_m, tile_n, tile_k, warps, stages = 128, 256, 128, 8, 3
    grid = (triton.cdiv(m, tile_m) * triton.cdiv(n, tile_n),)
    tile_kernel[grid](
        a, b, a_scale, b_scale, c, m, n, k,
        TILE_M=tile_m, TILE_N=tile_n, TILE_K=tile_k, GROUP=8, num_warps=warps, num_stages=stages,
    )  # fmt: skip
