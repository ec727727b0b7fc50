"""The product of int8 with int4 weights in Triton: exact tiles in int32 of 16 times the weights, scaled at the end.

A half in the upper four bits of a byte is 16 times the weight as int8, with its sign: the high half of a byte is there
already, and the low one is shifted there. That is one operation a weight, and 16 is divided out with the scales.

A byte holds two neighbours along k, so a first kernel parts the tokens' elements into even and odd ones, and low and
high halves are multiplied by their own. y is computed as its transpose, weights times tokens: the weights come from
registers, from where the matrix units of Hopper take a left operand as it is.
"""
# ruff: noqa: N803 - compile-time arguments are upper case in Triton

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor


@triton.jit
def halves_kernel(x, parted, m, k, nbytes, BLOCK: tl.constexpr):
    """A row's even elements into the first half of `parted`, odd ones into the second; past the end of the row is 0."""
    row, first = tl.program_id(0).to(tl.int64), tl.program_id(1) * BLOCK
    element = 2 * first + tl.arange(0, 2 * BLOCK)
    even, odd = tl.split(tl.reshape(tl.load(x + row * k + element, mask=element < k, other=0), (BLOCK, 2)))
    pair = first + tl.arange(0, BLOCK)
    tl.store(parted + row * nbytes + pair, even, mask=pair < nbytes)
    tl.store(parted + (m + row) * nbytes + pair, odd, mask=pair < nbytes)


@triton.jit
def scaled(total, by_token, by_channel):
    """The sum, of 16 times the weights, as float32 with its scales."""
    return total.to(tl.float32) * 0.0625 * by_token * by_channel


@triton.jit
def tile_kernel(
    tokens, weights, parted, packed, x_scale, w_scale, y, parts, m, n, nbytes,
    COPIED: tl.constexpr, TILE_M: tl.constexpr, TILE_N: tl.constexpr, TILE_K: tl.constexpr,
    SPLIT: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    """`nbytes` a row; where SPLIT, sums go to `parts`.

    COPIED: tokens and weights are descriptors, by which the copy engine fetches tiles, with zeros beyond the edge.
    """
    tiles_n = tl.cdiv(n, TILE_N)
    band = tl.program_id(0) // (GROUP * tiles_n)
    height = min(tl.cdiv(m, TILE_M) - band * GROUP, GROUP)
    within = tl.program_id(0) % (GROUP * tiles_n)
    first_row = (band * GROUP + within % height) * TILE_M
    first_column = within // height * TILE_N
    row = (first_row + tl.arange(0, TILE_M)).to(tl.int64)
    column = (first_column + tl.arange(0, TILE_N)).to(tl.int64)
    total = tl.zeros((TILE_N, TILE_M), tl.int32)
    steps = tl.cdiv(nbytes, TILE_K)
    each = tl.cdiv(steps, SPLIT)
    first = tl.program_id(1) * each
    for step in range(first, min(first + each, steps)):
        start = step * TILE_K
        if COPIED:
            both = weights.load([first_column, start])
            even = tokens.load([0, first_row, start]).reshape(TILE_M, TILE_K).T
            odd = tokens.load([1, first_row, start]).reshape(TILE_M, TILE_K).T
        else:
            byte = start + tl.arange(0, TILE_K)
            known = (byte < nbytes)[None, :]
            both = tl.load(
                packed + column[:, None] * nbytes + byte[None, :], mask=(column < n)[:, None] & known, other=0
            )
            inside = (row < m)[:, None] & known
            even = tl.load(parted + row[:, None] * nbytes + byte[None, :], mask=inside, other=0).T
            odd = tl.load(parted + (m + row)[:, None] * nbytes + byte[None, :], mask=inside, other=0).T
        low = (both << 4).to(tl.int8, bitcast=True)
        high = (both & 0xF0).to(tl.int8, bitcast=True)
        total = tl.dot(low, even, total, out_dtype=tl.int32)
        total = tl.dot(high, odd, total, out_dtype=tl.int32)
    inside = (column < n)[:, None] & (row < m)[None, :]
    at = row[None, :] * n + column[:, None]
    if SPLIT == 1:
        by_token = tl.load(x_scale + row, mask=row < m, other=0.0)[None, :]
        by_channel = tl.load(w_scale + column, mask=column < n, other=0.0)[:, None]
        tl.store(y + at, scaled(total, by_token, by_channel).to(y.dtype.element_ty), mask=inside)
    else:
        tl.store(parts + tl.program_id(1).to(tl.int64) * m * n + at, total, mask=inside)


@triton.jit
def add_kernel(parts, x_scale, w_scale, y, m, n, SPLIT: tl.constexpr, BLOCK: tl.constexpr):
    """The parts of a sum are integers, so their order changes nothing."""
    element = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = element < m * n
    total = tl.zeros((BLOCK,), tl.int32)
    for part in range(SPLIT):
        total += tl.load(parts + part * m * n + element, mask=inside, other=0)
    by_token = tl.load(x_scale + element // n, mask=inside, other=0.0)
    by_channel = tl.load(w_scale + element % n, mask=inside, other=0.0)
    tl.store(y + element, scaled(total, by_token, by_channel).to(y.dtype.element_ty), mask=inside)


def matmul_int4_int8(
    x: torch.Tensor, packed: torch.Tensor, x_scale: torch.Tensor, w_scale: torch.Tensor, y: torch.Tensor
) -> None:
    """[m, k] int8, [n, ceil(k / 2)] uint8, [m], [n] to [m, n] float16."""
    (m, k), (n, nbytes) = x.shape, packed.shape
    # Tokens, channels and bytes of a tile, warps, and parts of k, so that there are tiles for all multiprocessors. They
    # follow those of matmul_int4, and were not measured.
    if m <= 16:
        tile_m, tile_n, tile_k, warps, split = 16, 128, 128, 4, 4
    elif m <= 64:
        tile_m, tile_n, tile_k, warps, split = 64, 128, 128, 4, 8
    elif n % 16 == 0:
        tile_m, tile_n, tile_k, warps, split = 256, 128, 64, 8, 1
    else:  # the larger tile loses elements of rows that cannot be stored 16 at a time: a fault of Triton 3.6
        tile_m, tile_n, tile_k, warps, split = 128, 128, 64, 4, 1
    parted = torch.empty(2, m, nbytes, dtype=torch.int8, device=x.device)
    halves_kernel[(m, triton.cdiv(nbytes, 1024))](x, parted, m, k, nbytes, BLOCK=1024)
    parts = y if split == 1 else torch.empty(split, m, n, dtype=torch.int32, device=x.device)
    copied = nbytes % 16 == 0  # rows begin at multiples of 16 bytes
    tokens = TensorDescriptor.from_tensor(parted, [1, tile_m, tile_k]) if copied else parted
    weights = TensorDescriptor.from_tensor(packed, [tile_n, tile_k]) if copied else packed
    tile_kernel[(triton.cdiv(m, tile_m) * triton.cdiv(n, tile_n), split)](
        tokens, weights, parted, packed, x_scale, w_scale, y, parts, m, n, nbytes,
        COPIED=copied, TILE_M=tile_m, TILE_N=tile_n, TILE_K=tile_k, SPLIT=split, GROUP=8, num_warps=warps, num_stages=3,
    )  # fmt: skip
    if split > 1:
        add_kernel[(triton.cdiv(m * n, 1024),)](parts, x_scale, w_scale, y, m, n, SPLIT=split, BLOCK=1024)
