"""Pruning to 2:4 in both directions in Triton: each program reads one tile of x once, and prunes it both ways.

Bits are compared and copied, so that one kernel serves every float dtype. Without its sign bit, a float orders as a
whole number: both zeros are 0, and nothing is flushed or rounded on the way.
"""
# ruff: noqa: N803 - compile-time arguments are upper case in Triton

import torch
import triton
import triton.language as tl


@triton.jit
def pruned(a, b, c, d, MAGNITUDE: tl.constexpr):
    """Of four elements, as bits: the first kept, the second kept, and their indices as a nibble."""
    p, q, r, s = a & MAGNITUDE, b & MAGNITUDE, c & MAGNITUDE, d & MAGNITUDE
    # One comparison a pair, >= for the lower index, decides ties too. Kept is what has fewer than two before it.
    ab, ac, ad = (p >= q).to(tl.int32), (p >= r).to(tl.int32), (p >= s).to(tl.int32)
    bc, bd, cd = (q >= r).to(tl.int32), (q >= s).to(tl.int32), (r >= s).to(tl.int32)
    keep_a = ab + ac + ad >= 2
    keep_b = (1 - ab) + bc + bd >= 2
    keep_c = (1 - ac) + (1 - bc) + cd >= 2
    keep_d = (1 - ad) + (1 - bd) + (1 - cd) >= 2
    low = tl.where(keep_a, 0, tl.where(keep_b, 1, 2))
    high = tl.where(keep_d, 3, tl.where(keep_c, 2, 1))
    first = tl.where(keep_a, a, tl.where(keep_b, b, c))
    second = tl.where(keep_d, d, tl.where(keep_c, c, b))
    return first, second, low | (high << 2)


@triton.jit
def store(first, second, nibble, values, indices, row, group, n, k, N: tl.constexpr, GROUPS: tl.constexpr):
    """What was kept of [N, GROUPS] groups, to the rows `row`, [N], of an output, from the group `group` on."""
    value = 2 * group + tl.arange(0, 2 * GROUPS)
    inside = (row < n)[:, None] & (value < k // 2)[None, :]
    both = tl.reshape(tl.join(first, second), (N, 2 * GROUPS))
    tl.store(values + row[:, None] * (k // 2) + value[None, :], both, mask=inside)
    byte = group // 2 + tl.arange(0, GROUPS // 2)
    inside = (row < n)[:, None] & (byte < k // 8)[None, :]
    lower, upper = tl.split(tl.reshape(nibble, (N, GROUPS // 2, 2)))
    tl.store(indices + row[:, None] * (k // 8) + byte[None, :], (lower | (upper << 4)).to(tl.uint8), mask=inside)


@triton.jit
def prune_row(taken, values, indices, row, group, n, k, MAGNITUDE: tl.constexpr, N: tl.constexpr, GROUPS: tl.constexpr):
    """N rows of 4 · GROUPS elements that follow each other, taken apart in registers."""
    even, odd = tl.split(tl.reshape(taken, (N, GROUPS, 2, 2)))  # elements 0 and 2, 1 and 3 of each group
    a, c = tl.split(even)
    b, d = tl.split(odd)
    first, second, nibble = pruned(a, b, c, d, MAGNITUDE)
    store(first, second, nibble, values, indices, row, group, n, k, N, GROUPS)


@triton.jit
def tile_kernel(
    x, values, indices, values_t, indices_t, rows, cols,
    MAGNITUDE: tl.constexpr, DOWN: tl.constexpr, OVER: tl.constexpr,
):  # fmt: skip
    """A tile of 4 · DOWN rows and 4 · OVER columns.

    It is read as four tiles, of every fourth row each: down the columns, groups then lie in four tensors, element by
    element. What they keep is turned in shared memory and written along the columns.
    """
    first_row = tl.program_id(1).to(tl.int64) * (4 * DOWN)
    first_column = tl.program_id(0).to(tl.int64) * (4 * OVER)
    row, column = first_row + 4 * tl.arange(0, DOWN), first_column + tl.arange(0, 4 * OVER)
    at = x + row[:, None] * cols + column[None, :]
    inside = (row < rows)[:, None] & (column < cols)[None, :]  # rows are a multiple of 4
    a = tl.load(at, mask=inside, other=0)
    b = tl.load(at + cols, mask=inside, other=0)
    c = tl.load(at + 2 * cols, mask=inside, other=0)
    d = tl.load(at + 3 * cols, mask=inside, other=0)
    prune_row(a, values, indices, row, first_column // 4, rows, cols, MAGNITUDE, DOWN, OVER)
    prune_row(b, values, indices, row + 1, first_column // 4, rows, cols, MAGNITUDE, DOWN, OVER)
    prune_row(c, values, indices, row + 2, first_column // 4, rows, cols, MAGNITUDE, DOWN, OVER)
    prune_row(d, values, indices, row + 3, first_column // 4, rows, cols, MAGNITUDE, DOWN, OVER)
    first, second, nibble = pruned(a, b, c, d, MAGNITUDE)
    store(
        tl.trans(first), tl.trans(second), tl.trans(nibble), values_t, indices_t, column, first_row // 4, cols, rows,
        4 * OVER, DOWN,
    )  # fmt: skip


def sparsify_24_transpose(
    x: torch.Tensor, values: torch.Tensor, indices: torch.Tensor, values_t: torch.Tensor, indices_t: torch.Tensor
) -> None:
    """x, [rows, cols], and its transpose to kept elements and bytes of four 2-bit indices."""
    rows, cols = x.shape
    bits = torch.int16 if x.element_size() == 2 else torch.int32
    # 128 × 64: 16 bytes of indices for a column, and 8 for a row, whose neighbours follow from the next program. With
    # 32 elements a thread, registers suffice for two programs on a multiprocessor: one loads while the other stores.
    grid = (triton.cdiv(cols, 64), triton.cdiv(rows, 128))
    tile_kernel[grid](
        x.view(bits), values.view(bits), indices, values_t.view(bits), indices_t, rows, cols,
        MAGNITUDE=torch.iinfo(bits).max, DOWN=32, OVER=16, num_warps=8,
    )  # fmt: skip
