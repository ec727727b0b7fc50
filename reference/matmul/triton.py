"""Matrix multiplication in Triton: each program computes one tile of c, and sums in float32.

`input_precision="ieee"` keeps float32 operands in float32; without it tl.dot rounds them to TF32, which this problem's
error budget does not allow. float16 and bfloat16 use the matrix units either way.
"""
# ruff: noqa: N803 - compile-time arguments are upper case in Triton

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor


@triton.jit
def place(m, n, TILE_M: tl.constexpr, TILE_N: tl.constexpr, GROUP: tl.constexpr):
    """The first row and column of this program's tile.

    Programs run in bands of GROUP rows of tiles: those at work together share rows of a and columns of b in L2.
    """
    tiles_n = tl.cdiv(n, TILE_N)
    band = tl.program_id(0) // (GROUP * tiles_n)
    height = min(tl.cdiv(m, TILE_M) - band * GROUP, GROUP)
    within = tl.program_id(0) % (GROUP * tiles_n)
    return (band * GROUP + within % height) * TILE_M, within // height * TILE_N


@triton.jit
def copied_tile_kernel(
    a, b, c, parts, m, n, k,
    TILE_M: tl.constexpr, TILE_N: tl.constexpr, TILE_K: tl.constexpr, GROUP: tl.constexpr, SPLIT: tl.constexpr,
):  # fmt: skip
    """a, b and c are descriptors: the copy engine brings whole tiles into shared memory, with zeros beyond the edge.

    No thread computes addresses or masks, which is worth a third of the time. SPLIT programs share the k of a tile out,
    and each writes its float32 sums to `parts` [SPLIT, m, n]: which of them is the last one would be a race.
    """
    row, column = place(m, n, TILE_M, TILE_N, GROUP)
    total = tl.zeros((TILE_M, TILE_N), tl.float32)
    each = tl.cdiv(tl.cdiv(k, TILE_K), SPLIT) * TILE_K
    first = tl.program_id(1) * each
    for start in range(first, min(first + each, k), TILE_K):
        total = tl.dot(a.load([row, start]), b.load([start, column]), total)
    if SPLIT == 1:
        c.store([row, column], total.to(c.dtype))
    else:
        rows = (tl.program_id(1) * m + row + tl.arange(0, TILE_M)).to(tl.int64)[:, None]
        columns = column + tl.arange(0, TILE_N)[None, :]
        inside = (row + tl.arange(0, TILE_M) < m)[:, None] & (columns < n)
        tl.store(parts + rows * n + columns, total, mask=inside)


@triton.jit
def add_kernel(parts, c, elements, SPLIT: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for part in tl.static_range(SPLIT):
        total += tl.load(parts + part * elements + at, mask=at < elements, other=0.0)
    tl.store(c + at, total.to(c.dtype.element_ty), mask=at < elements)


@triton.jit
def tile_kernel(
    a, b, c, m, n, k, TILE_M: tl.constexpr, TILE_N: tl.constexpr, TILE_K: tl.constexpr, GROUP: tl.constexpr
):
    """The same for rows that begin anywhere, which the copy engine cannot fetch, and for float32."""
    first_row, first_column = place(m, n, TILE_M, TILE_N, GROUP)
    # In 64 bits: m·k may exceed 2³¹ elements.
    row = (first_row + tl.arange(0, TILE_M)).to(tl.int64)[:, None]
    column = (first_column + tl.arange(0, TILE_N)).to(tl.int64)[None, :]
    total = tl.zeros((TILE_M, TILE_N), tl.float32)
    for start in range(0, k, TILE_K):
        along = start + tl.arange(0, TILE_K)
        left = tl.load(a + row * k + along[None, :], mask=(row < m) & (along[None, :] < k), other=0.0)
        right = tl.load(b + along[:, None] * n + column, mask=(along[:, None] < k) & (column < n), other=0.0)
        total = tl.dot(left, right, total, input_precision="ieee")
    tl.store(c + row * n + column, total.to(c.dtype.element_ty), mask=(row < m) & (column < n))


def tiles(m: int, n: int) -> tuple[int, int, int, int, int]:
    """Rows, columns and depth of a tile, warps, and stages of the pipeline: what was fastest on an H200.

    The matrix units want large tiles; with few rows, or too few tiles for 132 multiprocessors, smaller ones win.
    """
    if m <= 16:
        return 16, 128, 128, 4, 4
    if m <= 64:
        return 64, 128, 64, 4, 5
    if triton.cdiv(m, 128) * triton.cdiv(n, 256) >= 132:
        return 128, 256, 64, 8, 4
    return 64, 128, 128, 4, 3


def matmul(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> None:
    """c = a @ b: [m, k], [k, n], [m, n], all of one dtype."""
    (m, k), n = a.shape, b.shape[1]
    if a.dtype is torch.float32 or k % 8 or n % 8:
        # float32 runs on the ordinary cores, where large tiles spill.
        tile_m, tile_n, tile_k, warps = (64, 64, 32, 4) if a.dtype is torch.float32 else (128, 128, 64, 8)
        grid = (triton.cdiv(m, tile_m) * triton.cdiv(n, tile_n),)
        tile_kernel[grid](
            a, b, c, m, n, k, TILE_M=tile_m, TILE_N=tile_n, TILE_K=tile_k, GROUP=8, num_warps=warps, num_stages=3
        )
        return
    tile_m, tile_n, tile_k, warps, stages = tiles(m, n)
    grid = triton.cdiv(m, tile_m) * triton.cdiv(n, tile_n)
    # A few rows and a long k: too few tiles to keep all multiprocessors reading.
    split = 8 if m <= 64 and grid <= 64 and k >= 4096 else 1
    parts = c if split == 1 else torch.empty(split, m, n, dtype=torch.float32, device=c.device)
    shapes = (a, [tile_m, tile_k]), (b, [tile_k, tile_n]), (c, [tile_m, tile_n])
    copied_tile_kernel[(grid, split)](
        *(TensorDescriptor.from_tensor(tensor, shape) for tensor, shape in shapes), parts, m, n, k,
        TILE_M=tile_m, TILE_N=tile_n, TILE_K=tile_k, GROUP=8, SPLIT=split, num_warps=warps, num_stages=stages,
    )  # fmt: skip
    if split > 1:
        add_kernel[(triton.cdiv(m * n, 1024),)](parts, c, m * n, SPLIT=split, BLOCK=1024)
