"""Matrix multiplication in Triton: each program computes one tile of c, and sums in float32.

`input_precision="ieee"` keeps float32 operands in float32; without it tl.dot rounds them to TF32, which this problem's
error budget does not allow. float16 and bfloat16 use the matrix units either way.
"""
# ruff: noqa: N803 - compile-time arguments are upper case in Triton

import torch
import triton
import triton.language as tl


@triton.jit
def tile_kernel(
    a, b, c, m, n, k, TILE_M: tl.constexpr, TILE_N: tl.constexpr, TILE_K: tl.constexpr, GROUP: tl.constexpr
):
    # Programs run in bands of GROUP rows of tiles: those at work together share rows of a and columns of b in L2.
    tiles_n = tl.cdiv(n, TILE_N)
    band = tl.program_id(0) // (GROUP * tiles_n)
    height = min(tl.cdiv(m, TILE_M) - band * GROUP, GROUP)
    within = tl.program_id(0) % (GROUP * tiles_n)
    # In 64 bits: m·k may exceed 2³¹ elements.
    row = ((band * GROUP + within % height) * TILE_M + tl.arange(0, TILE_M)).to(tl.int64)[:, None]
    column = (within // height * TILE_N + tl.arange(0, TILE_N)).to(tl.int64)[None, :]
    total = tl.zeros((TILE_M, TILE_N), tl.float32)
    for start in range(0, k, TILE_K):
        along = start + tl.arange(0, TILE_K)
        left = tl.load(a + row * k + along[None, :], mask=(row < m) & (along[None, :] < k), other=0.0)
        right = tl.load(b + along[:, None] * n + column, mask=(along[:, None] < k) & (column < n), other=0.0)
        total = tl.dot(left, right, total, input_precision="ieee")
    tl.store(c + row * n + column, total.to(c.dtype.element_ty), mask=(row < m) & (column < n))


def matmul(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> None:
    """c = a @ b: [m, k], [k, n], [m, n], all of one dtype."""
    (m, k), n = a.shape, b.shape[1]
    # The matrix units want large tiles; float32 runs on the ordinary cores, where large tiles spill.
    tile_m, tile_n, tile_k, warps = (64, 64, 32, 4) if a.dtype is torch.float32 else (128, 128, 64, 8)
    grid = (triton.cdiv(m, tile_m) * triton.cdiv(n, tile_n),)
    tile_kernel[grid](
        a, b, c, m, n, k, TILE_M=tile_m, TILE_N=tile_n, TILE_K=tile_k, GROUP=8, num_warps=warps, num_stages=3
    )
