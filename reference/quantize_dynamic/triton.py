"""Dynamic quantization and the product in Triton: one kernel makes rows int8, one multiplies tiles and scales them.

Each row is quantized once, and not again for every tile of y; its integers are half as large as x and stay in L2. The
sums never leave the registers: what is written is y itself.
"""
# ruff: noqa: N803 - compile-time arguments are upper case in Triton

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor


@triton.jit
def row_kernel(x, q, scale, k, BLOCK: tl.constexpr):
    """One row: its largest magnitude, then its integers; the second pass finds the row in a cache."""
    row = tl.program_id(0).to(tl.int64)
    largest = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, k, BLOCK):
        along = start + tl.arange(0, BLOCK)
        largest = tl.maximum(largest, tl.abs(tl.load(x + row * k + along, mask=along < k, other=0.0).to(tl.float32)))
    peak = tl.max(largest, 0)
    tl.store(scale + row, peak / 127.0)
    divisor = tl.where(peak > 0.0, peak, 1.0)  # zeros stay zeros
    for start in range(0, k, BLOCK):
        along = start + tl.arange(0, BLOCK)
        value = tl.load(x + row * k + along, mask=along < k, other=0.0).to(tl.float32)
        steps = tl.div_rn(127.0 * value, tl.broadcast_to(divisor, (BLOCK,)))  # rounded, as `/` need not be
        # Beside 1.5 · 2²³ a float32 has no room for fractions: the sum is rounded to nearest, ties to even.
        steps = (steps + 12582912.0) - 12582912.0
        tl.store(q + row * k + along, steps.to(tl.int8), mask=along < k)


@triton.jit
def place(m, n, TILE_M: tl.constexpr, TILE_N: tl.constexpr, GROUP: tl.constexpr):
    """The first row and column of this program's tile; those at work together share rows of q and of w in L2."""
    tiles_n = tl.cdiv(n, TILE_N)
    band = tl.program_id(0) // (GROUP * tiles_n)
    height = min(tl.cdiv(m, TILE_M) - band * GROUP, GROUP)
    within = tl.program_id(0) % (GROUP * tiles_n)
    return (band * GROUP + within % height) * TILE_M, within // height * TILE_N


@triton.jit
def tile_kernel(
    q, w, q_scale, w_scale, y, q_tiles, w_tiles, m, n, k,
    COPIED: tl.constexpr, TILE_M: tl.constexpr, TILE_N: tl.constexpr, TILE_K: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    """COPIED: q_tiles and w_tiles are descriptors: the copy engine fetches tiles, with zeros beyond the edge."""
    first_row, first_column = place(m, n, TILE_M, TILE_N, GROUP)
    row = (first_row + tl.arange(0, TILE_M)).to(tl.int64)
    column = (first_column + tl.arange(0, TILE_N)).to(tl.int64)
    total = tl.zeros((TILE_M, TILE_N), tl.int32)
    for start in range(0, k, TILE_K):
        if COPIED:
            left = q_tiles.load([first_row, start])
            right = w_tiles.load([first_column, start]).T
        else:
            along = start + tl.arange(0, TILE_K)
            known = (along < k)[None, :]
            left = tl.load(q + row[:, None] * k + along[None, :], mask=(row < m)[:, None] & known, other=0)
            right = tl.load(w + column[:, None] * k + along[None, :], mask=(column < n)[:, None] & known, other=0).T
        total = tl.dot(left, right, total, out_dtype=tl.int32)
    by_row = tl.load(q_scale + row, mask=row < m, other=0.0)
    by_channel = tl.load(w_scale + column, mask=column < n, other=0.0)
    result = total.to(tl.float32) * by_row[:, None] * by_channel[None, :]
    inside = (row < m)[:, None] & (column < n)[None, :]
    tl.store(y + row[:, None] * n + column[None, :], result.to(y.dtype.element_ty), mask=inside)


def quantize_dynamic(x: torch.Tensor, w: torch.Tensor, w_scale: torch.Tensor, y: torch.Tensor) -> None:
    """[m, k] float16, [n, k] int8, [n] to [m, n] float16."""
    (m, k), n = x.shape, len(w)
    q = torch.empty(m, k, dtype=torch.int8, device=x.device)
    q_scale = torch.empty(m, dtype=torch.float32, device=x.device)
    row_kernel[(m,)](x, q, q_scale, k, BLOCK=min(triton.next_power_of_2(k), 4096), num_warps=8)
    # Rows, columns and depth of a tile, warps, and stages of the pipeline: those of matmul_int8, measured there.
    if m <= 16:
        tile_m, tile_n, tile_k, warps, stages = 16, 32, 512, 4, 5
    elif m <= 64:
        tile_m, tile_n, tile_k, warps, stages = 64, 128, 256, 4, 4
    else:
        tile_m, tile_n, tile_k, warps, stages = 128, 256, 128, 8, 4
    copied = k % 16 == 0  # rows begin at multiples of 16 bytes
    q_tiles = TensorDescriptor.from_tensor(q, [tile_m, tile_k]) if copied else q
    w_tiles = TensorDescriptor.from_tensor(w, [tile_n, tile_k]) if copied else w
    tile_kernel[(triton.cdiv(m, tile_m) * triton.cdiv(n, tile_n),)](
        q, w, q_scale, w_scale, y, q_tiles, w_tiles, m, n, k,
        COPIED=copied, TILE_M=tile_m, TILE_N=tile_n, TILE_K=tile_k, GROUP=8, num_warps=warps, num_stages=stages,
    )  # fmt: skip
