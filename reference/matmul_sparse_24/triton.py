"""The product with 2:4 sparse weights in Triton, in two kernels: tiles for many tokens, rows for one.

mma.sp, which multiplies what is compressed, cannot be reached from Triton: its tl.dot takes dense operands. So weights
are made dense in registers, and only the traffic is halved. k is split where tiles are few.
"""
# ruff: noqa: N803 - compile-time arguments are upper case in Triton

import torch
import triton
import triton.language as tl


@triton.jit
def placed(first, second, low, high, place: tl.constexpr):
    """The element at one of the four places of a group: one of the two that were kept, or 0."""
    return tl.where(low == place, first, tl.where(high == place, second, 0.0))


@triton.jit
def tile_kernel(
    x, values, indices, y, parts, m, n, k,
    TILE_M: tl.constexpr, TILE_N: tl.constexpr, TILE_K: tl.constexpr, SPLIT: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    """Programs run in bands of GROUP rows of tiles: those at work together share rows of x and of the weights in L2."""
    tiles_n = tl.cdiv(n, TILE_N)
    band = tl.program_id(0) // (GROUP * tiles_n)
    height = min(tl.cdiv(m, TILE_M) - band * GROUP, GROUP)
    within = tl.program_id(0) % (GROUP * tiles_n)
    row = ((band * GROUP + within % height) * TILE_M + tl.arange(0, TILE_M)).to(tl.int64)
    column = (within // height * TILE_N + tl.arange(0, TILE_N)).to(tl.int64)
    total = tl.zeros((TILE_M, TILE_N), tl.float32)
    for step in range(tl.program_id(1), tl.cdiv(k, TILE_K), SPLIT):
        along = step * TILE_K + tl.arange(0, TILE_K)
        value = step * (TILE_K // 2) + tl.arange(0, TILE_K // 2)
        byte = step * (TILE_K // 8) + tl.arange(0, TILE_K // 8)
        left = tl.load(x + row[:, None] * k + along[None, :], mask=(row < m)[:, None] & (along < k)[None, :], other=0.0)
        known = (column < n)[:, None] & (value < k // 2)[None, :]
        kept = tl.load(values + column[:, None] * (k // 2) + value[None, :], mask=known, other=0.0)
        known = (column < n)[:, None] & (byte < k // 8)[None, :]
        both = tl.load(indices + column[:, None] * (k // 8) + byte[None, :], mask=known, other=0)
        # For each of four places, one weight a group. Places 0 and 2, 1 and 3 joined, then both, are in order.
        first, second = tl.split(tl.reshape(kept, (TILE_N, TILE_K // 4, 2)))
        nibble = tl.reshape(tl.join(both & 0xF, both >> 4), (TILE_N, TILE_K // 4))
        low, high = nibble & 3, nibble >> 2
        even = tl.join(placed(first, second, low, high, 0), placed(first, second, low, high, 2))
        odd = tl.join(placed(first, second, low, high, 1), placed(first, second, low, high, 3))
        weights = tl.reshape(tl.join(even, odd), (TILE_N, TILE_K))
        total = tl.dot(left, tl.trans(weights), total)
    inside = (row < m)[:, None] & (column < n)[None, :]
    at = row[:, None] * n + column[None, :]
    if SPLIT == 1:
        tl.store(y + at, total.to(y.dtype.element_ty), mask=inside)
    else:
        tl.store(parts + tl.program_id(1).to(tl.int64) * m * n + at, total, mask=inside)


@triton.jit
def add_kernel(parts, y, n, SPLIT: tl.constexpr, BLOCK: tl.constexpr):
    """The parts of each sum, which were kept in float32, in a fixed order."""
    element = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for part in range(SPLIT):
        total += tl.load(parts + part * n + element, mask=element < n, other=0.0)
    tl.store(y + element, total.to(y.dtype.element_ty), mask=element < n)


@triton.jit
def row_kernel(x, values, indices, y, n, k, ROWS: tl.constexpr, BYTES: tl.constexpr):
    """One token: nothing is made dense, the two elements of x are selected that meet the weights. x stays in L1.

    As low < high, low is never 3 and high never 0.
    """
    row = (tl.program_id(0) * ROWS + tl.arange(0, ROWS)).to(tl.int64)
    total = tl.zeros((ROWS, 2 * BYTES), tl.float32)
    for start in range(0, k // 8, BYTES):
        byte = start + tl.arange(0, BYTES)
        value, along = 4 * start + tl.arange(0, 4 * BYTES), 8 * start + tl.arange(0, 8 * BYTES)
        known = (row < n)[:, None] & (byte < k // 8)[None, :]
        both = tl.load(indices + row[:, None] * (k // 8) + byte[None, :], mask=known, other=0)
        nibble = tl.reshape(tl.join(both & 0xF, both >> 4), (ROWS, 2 * BYTES))
        low, high = nibble & 3, nibble >> 2
        known = (row < n)[:, None] & (value < k // 2)[None, :]
        kept = tl.load(values + row[:, None] * (k // 2) + value[None, :], mask=known, other=0.0).to(tl.float32)
        first, second = tl.split(tl.reshape(kept, (ROWS, 2 * BYTES, 2)))
        token = tl.load(x + along, mask=along < k, other=0.0).to(tl.float32)
        even, odd = tl.split(tl.reshape(token, (2 * BYTES, 2, 2)))
        a, c = tl.split(even)
        b, d = tl.split(odd)
        a, b, c, d = a[None, :], b[None, :], c[None, :], d[None, :]
        total += first * tl.where(low == 0, a, tl.where(low == 1, b, c))
        total += second * tl.where(high == 3, d, tl.where(high == 2, c, b))
    tl.store(y + row, tl.sum(total, axis=1).to(y.dtype.element_ty), mask=row < n)


def matmul_sparse_24(x: torch.Tensor, values: torch.Tensor, indices: torch.Tensor) -> torch.Tensor:
    """[m, k], [n, k / 2], [n, k / 8] uint8 to [m, n]; all but the bytes are float16 or bfloat16."""
    (m, k), n = x.shape, len(values)
    y = x.new_empty(m, n)
    if m == 1:
        row_kernel[(triton.cdiv(n, 4),)](x, values, indices, y, n, k, ROWS=4, BYTES=128, num_warps=4)
        return y
    tile_m, tile_n, tile_k, warps = (16, 64, 128, 4) if m <= 16 else (64, 64, 64, 4) if m <= 64 else (128, 128, 64, 8)
    tiles = triton.cdiv(m, tile_m) * triton.cdiv(n, tile_n)
    split = 1 if tiles >= 132 else 4
    parts = y if split == 1 else torch.empty(split, m, n, dtype=torch.float32, device=x.device)
    tile_kernel[(tiles, split)](
        x, values, indices, y, parts, m, n, k,
        TILE_M=tile_m, TILE_N=tile_n, TILE_K=tile_k, SPLIT=split, GROUP=8, num_warps=warps, num_stages=3,
    )  # fmt: skip
    if split > 1:
        add_kernel[(triton.cdiv(m * n, 1024),)](parts, y, m * n, SPLIT=split, BLOCK=1024)
    return y
