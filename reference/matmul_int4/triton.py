"""The product with int4 weights in Triton, in two kernels: tiles for many tokens, rows for one; k is split where tiles are few.

Bytes become two weights each in registers, which then go to the matrix units.
"""
# ruff: noqa: N803 - compile-time arguments are upper case in Triton

import torch
import triton
import triton.language as tl


@triton.jit
def signed(half):
    """A half of a byte as a number: 15 becomes -1."""
    return ((half ^ 8).to(tl.int32) - 8).to(tl.float32)


@triton.jit
def tile_kernel(
    x, packed, scale, y, parts, m, n, k, size,
    TILE_M: tl.constexpr, TILE_N: tl.constexpr, TILE_K: tl.constexpr, SPLIT: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    """TILE_K counts bytes, of two weights each; a tile lies within one group of weights, or the groups within a tile."""
    tiles_n = tl.cdiv(n, TILE_N)
    band = tl.program_id(0) // (GROUP * tiles_n)
    height = min(tl.cdiv(m, TILE_M) - band * GROUP, GROUP)
    within = tl.program_id(0) % (GROUP * tiles_n)
    row = ((band * GROUP + within % height) * TILE_M + tl.arange(0, TILE_M)).to(tl.int64)
    column = (within // height * TILE_N + tl.arange(0, TILE_N)).to(tl.int64)
    total = tl.zeros((TILE_M, TILE_N), tl.float32)
    nbytes = k // 2
    for step in range(tl.program_id(1), tl.cdiv(nbytes, TILE_K), SPLIT):
        byte = step * TILE_K + tl.arange(0, TILE_K)
        along = 2 * step * TILE_K + tl.arange(0, 2 * TILE_K)
        left = tl.load(x + row[:, None] * k + along[None, :], mask=(row < m)[:, None] & (along < k)[None, :], other=0.0)
        known = (column < n)[None, :] & (byte < nbytes)[:, None]
        both = tl.load(packed + column[None, :] * nbytes + byte[:, None], mask=known, other=0)
        factor = tl.load(scale + column[None, :] * (k // size) + (2 * byte // size)[:, None], mask=known, other=0.0).to(tl.float32)
        low = (signed(both & 0xF) * factor).to(x.dtype.element_ty)
        high = (signed(both >> 4) * factor).to(x.dtype.element_ty)
        # [bytes, columns, 2] to [2 · bytes, columns]: the halves of a byte are neighbours along k.
        right = tl.reshape(tl.trans(tl.join(low, high), (0, 2, 1)), (2 * TILE_K, TILE_N))
        total = tl.dot(left, right, total)
    inside = (row < m)[:, None] & (column < n)[None, :]
    at = row[:, None] * n + column[None, :]
    if SPLIT == 1:
        tl.store(y + at, total.to(y.dtype.element_ty), mask=inside)
    else:
        tl.store(parts + tl.program_id(1).to(tl.int64) * m * n + at, total, mask=inside)


@triton.jit
def add_kernel(parts, y, n, SPLIT: tl.constexpr, BLOCK: tl.constexpr):
    element = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for part in range(SPLIT):
        total += tl.load(parts + part * n + element, mask=element < n, other=0.0)
    tl.store(y + element, total.to(y.dtype.element_ty), mask=element < n)


@triton.jit
def row_kernel(x, packed, scale, y, n, k, size, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """One token: each program takes some rows of weights."""
    row = (tl.program_id(0) * ROWS + tl.arange(0, ROWS)).to(tl.int64)
    nbytes = k // 2
    total = tl.zeros((ROWS, BLOCK), tl.float32)
    for start in range(0, nbytes, BLOCK):
        byte = start + tl.arange(0, BLOCK)
        inside = (row < n)[:, None] & (byte < nbytes)[None, :]
        both = tl.load(packed + row[:, None] * nbytes + byte[None, :], mask=inside, other=0)
        factor = tl.load(scale + row[:, None] * (k // size) + (2 * byte // size)[None, :], mask=inside, other=0.0).to(tl.float32)
        pair = start * 2 + tl.arange(0, 2 * BLOCK)
        even, odd = tl.split(tl.reshape(tl.load(x + pair, mask=pair < k, other=0.0).to(tl.float32), (BLOCK, 2)))
        total += (signed(both & 0xF) * even[None, :] + signed(both >> 4) * odd[None, :]) * factor
    tl.store(y + row, tl.sum(total, axis=1).to(y.dtype.element_ty), mask=row < n)


def matmul_int4(x: torch.Tensor, packed: torch.Tensor, scale: torch.Tensor, y: torch.Tensor) -> None:
    """[m, k], [n, k / 2] uint8, [n, k / size] to [m, n]; all but the bytes are float16 or bfloat16."""
    (m, k), n = x.shape, len(packed)
    size = k // scale.shape[1]
    if m == 1:
        row_kernel[(triton.cdiv(n, 4),)](x, packed, scale, y, n, k, size, ROWS=4, BLOCK=512, num_warps=4)
        return
    tile_m, tile_n, tile_k, warps = (16, 64, 64, 4) if m <= 16 else (64, 64, 64, 4) if m <= 64 else (128, 128, 32, 8)
    tiles = triton.cdiv(m, tile_m) * triton.cdiv(n, tile_n)
    split = 1 if tiles >= 132 else 4
    parts = y if split == 1 else torch.empty(split, m, n, dtype=torch.float32, device=x.device)
    tile_kernel[(tiles, split)](
        x, packed, scale, y, parts, m, n, k, size,
        TILE_M=tile_m, TILE_N=tile_n, TILE_K=tile_k, SPLIT=split, GROUP=8, num_warps=warps, num_stages=4,
    )  # fmt: skip
    if split > 1:
        add_kernel[(triton.cdiv(m * n, 1024),)](parts, y, m * n, SPLIT=split, BLOCK=1024)
