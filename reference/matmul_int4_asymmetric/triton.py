"""The product with int4 weights and zero points in Triton: tiles of y for many tokens, rows of weights for one.

Made into a float by its bits, a half of a byte is too large by a constant, which has to be subtracted. Here the zero
point, made into a float alike, is subtracted instead: that costs a load per group, and no operation per weight.

In the tiles, y is computed as its transpose, weights times tokens: the weights are made wide in registers, and from
there the matrix units of Hopper take a left operand as it is. A byte holds two neighbours along k, so a first kernel
parts the tokens' elements into even and odd ones, and low and high halves are multiplied by their own.
"""
# ruff: noqa: N803 - compile-time arguments are upper case in Triton

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor


@triton.jit
def raised(half, like: tl.constexpr):
    """2ᵖ + half in the dtype `like`, put in as the low end of the mantissa of 2ᵖ, where the last bit counts ones.

    0x4300 is bfloat16's 128, 0x6400 float16's 1024, 0x4B000000 float32's 2²³. Such numbers differ by exactly what their
    halves do, so `raised(half) - raised(zero)` is half - zero. A conversion from integers runs at an eighth of the rate
    of the subtraction.
    """
    if like == tl.bfloat16:
        result = (half.to(tl.uint16) | 0x4300).to(tl.bfloat16, bitcast=True)
    elif like == tl.float16:
        result = (half.to(tl.uint16) | 0x6400).to(tl.float16, bitcast=True)
    else:
        result = (half.to(tl.uint32) | 0x4B000000).to(tl.float32, bitcast=True)
    return result


@triton.jit
def halves_kernel(x, parted, pairs, BLOCK: tl.constexpr):
    """Even elements into the first half of `parted`, odd ones into the second."""
    first = tl.program_id(0).to(tl.int64) * BLOCK
    element = 2 * first + tl.arange(0, 2 * BLOCK)
    even, odd = tl.split(tl.reshape(tl.load(x + element, mask=element < 2 * pairs, other=0.0), (BLOCK, 2)))
    pair = first + tl.arange(0, BLOCK)
    tl.store(parted + pair, even, mask=pair < pairs)
    tl.store(parted + pairs + pair, odd, mask=pair < pairs)


@triton.jit
def tile_kernel(
    tokens, weights, parted, packed, scale, zero, y, parts, m, n, nbytes, per_group,
    COPIED: tl.constexpr, TILE_M: tl.constexpr, TILE_N: tl.constexpr, TILE_K: tl.constexpr,
    SPLIT: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    """`nbytes` a row, `per_group` of them in a group, which TILE_K divides; where SPLIT, sums go to `parts`.

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
    total = tl.zeros((TILE_N, TILE_M), tl.float32)
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
            at = row[:, None] * nbytes + byte[None, :]
            even = tl.load(parted + at, mask=(row < m)[:, None] & known, other=0.0).T
            odd = tl.load(parted + m * nbytes + at, mask=(row < m)[:, None] & known, other=0.0).T
        group = column * (nbytes // per_group) + start // per_group
        factor = tl.load(scale + group, mask=column < n, other=0.0)[:, None]
        middle = raised(tl.load(zero + group, mask=column < n, other=0), factor.dtype)[:, None]
        low = (raised(both & 0xF, factor.dtype) - middle) * factor
        high = (raised(both >> 4, factor.dtype) - middle) * factor
        total = tl.dot(high, odd, tl.dot(low, even, total))
    inside = (column < n)[:, None] & (row < m)[None, :]
    at = row[None, :] * n + column[:, None]
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
def row_kernel(x, packed, scale, zero, y, n, nbytes, per_group, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """One token: each program takes some rows of weights, and sums in float32."""
    row = (tl.program_id(0) * ROWS + tl.arange(0, ROWS)).to(tl.int64)
    total = tl.zeros((ROWS, BLOCK), tl.float32)
    for start in tl.range(0, nbytes, BLOCK, num_stages=3):  # the next blocks are on their way
        byte = start + tl.arange(0, BLOCK)
        inside = (row < n)[:, None] & (byte < nbytes)[None, :]
        both = tl.load(packed + row[:, None] * nbytes + byte[None, :], mask=inside, other=0)
        group = row[:, None] * (nbytes // per_group) + (byte // per_group)[None, :]
        factor = tl.load(scale + group, mask=inside, other=0.0).to(tl.float32)
        middle = raised(tl.load(zero + group, mask=inside, other=0), tl.float32)
        pair = start * 2 + tl.arange(0, 2 * BLOCK)
        values = tl.load(x + pair, mask=pair < 2 * nbytes, other=0.0).to(tl.float32)
        even, odd = tl.split(tl.reshape(values, (BLOCK, 2)))
        low, high = raised(both & 0xF, tl.float32) - middle, raised(both >> 4, tl.float32) - middle
        total += (low * even[None, :] + high * odd[None, :]) * factor
    tl.store(y + row, tl.sum(total, axis=1).to(y.dtype.element_ty), mask=row < n)


def matmul_int4_asymmetric(
    x: torch.Tensor, packed: torch.Tensor, scale: torch.Tensor, zero: torch.Tensor, y: torch.Tensor
) -> None:
    """[m, k], [n, k / 2] uint8, [n, k / size] and its like in uint8 to [m, n]; the rest is float16 or bfloat16."""
    (m, k), n = x.shape, len(packed)
    nbytes, per_group = k // 2, k // scale.shape[1] // 2
    # The smallest tile of the matrix units is 16 deep; groups that it does not divide are left to the rows' kernel.
    tile_k = min(per_group & -per_group, 64)
    if m == 1 or tile_k < 16:
        for token, result in zip(x, y, strict=True):
            row_kernel[(triton.cdiv(n, 4),)](
                token, packed, scale, zero, result, n, nbytes, per_group, ROWS=4, BLOCK=512, num_warps=4
            )
        return
    # Tokens and channels of a tile, warps, and parts of k, so that there are tiles for all multiprocessors. They are
    # those of matmul_int4, and were measured there.
    if m <= 16:
        tile_m, tile_n, warps, split = 16, 128, 4, 4
    elif m <= 64:
        tile_m, tile_n, warps, split = 64, 128, 4, 8
    elif n % 16 == 0:
        tile_m, tile_n, warps, split = 256, 128, 8, 1
    else:  # the larger tile loses elements of rows that cannot be stored 16 at a time: a fault of Triton 3.6
        tile_m, tile_n, warps, split = 128, 128, 4, 1
    parted = torch.empty(2, m, nbytes, dtype=x.dtype, device=x.device)
    halves_kernel[(triton.cdiv(m * nbytes, 1024),)](x, parted, m * nbytes, BLOCK=1024)
    parts = y if split == 1 else torch.empty(split, m, n, dtype=torch.float32, device=x.device)
    copied = nbytes % 16 == 0  # rows begin at multiples of 16 bytes
    tokens = TensorDescriptor.from_tensor(parted, [1, tile_m, tile_k]) if copied else parted
    weights = TensorDescriptor.from_tensor(packed, [tile_n, tile_k]) if copied else packed
    tile_kernel[(triton.cdiv(m, tile_m) * triton.cdiv(n, tile_n), split)](
        tokens, weights, parted, packed, scale, zero, y, parts, m, n, nbytes, per_group,
        COPIED=copied, TILE_M=tile_m, TILE_N=tile_n, TILE_K=tile_k, SPLIT=split, GROUP=8, num_warps=warps, num_stages=3,
    )  # fmt: skip
    if split > 1:
        add_kernel[(triton.cdiv(m * n, 1024),)](parts, y, m * n, SPLIT=split, BLOCK=1024)
