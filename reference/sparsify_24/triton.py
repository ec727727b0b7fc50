"""Pruning to 2:4 in Triton: bits are compared and copied, so that one kernel serves every float dtype.

Without its sign bit, a float orders as a whole number: both zeros are 0, and nothing is flushed or rounded on the way.
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
def along_rows_kernel(x, values, indices, nbytes, MAGNITUDE: tl.constexpr, BLOCK: tl.constexpr):
    """Rows hold whole bytes of indices, so the matrix is one long row. Contiguous loads, taken apart in registers."""
    start = tl.program_id(0).to(tl.int64) * BLOCK
    element = 8 * start + tl.arange(0, 8 * BLOCK)
    bits = tl.reshape(tl.load(x + element, mask=element < 8 * nbytes, other=0), (2 * BLOCK, 2, 2))
    even, odd = tl.split(bits)  # elements 0 and 2, 1 and 3 of each group
    a, c = tl.split(even)
    b, d = tl.split(odd)
    first, second, nibble = pruned(a, b, c, d, MAGNITUDE)
    value = 4 * start + tl.arange(0, 4 * BLOCK)
    tl.store(values + value, tl.reshape(tl.join(first, second), (4 * BLOCK,)), mask=value < 4 * nbytes)
    lower, upper = tl.split(tl.reshape(nibble, (BLOCK, 2)))
    byte = start + tl.arange(0, BLOCK)
    tl.store(indices + byte, (lower | (upper << 4)).to(tl.uint8), mask=byte < nbytes)


@triton.jit
def down_columns_kernel(
    x, values, indices, rows, cols, MAGNITUDE: tl.constexpr, GROUPS: tl.constexpr, COLUMNS: tl.constexpr
):
    """A tile of 4 · GROUPS rows: read along the rows, turned in registers and shared memory, written along the columns.

    Both sides touch whole stretches of memory: COLUMNS elements of a row, 2 · GROUPS values of a column.
    """
    first_column = tl.program_id(0).to(tl.int64) * COLUMNS
    first_group = tl.program_id(1).to(tl.int64) * GROUPS
    group, column = first_group + tl.arange(0, GROUPS), first_column + tl.arange(0, COLUMNS)
    at = x + 4 * group[:, None] * cols + column[None, :]
    inside = (4 * group < rows)[:, None] & (column < cols)[None, :]
    a = tl.load(at, mask=inside, other=0)
    b = tl.load(at + cols, mask=inside, other=0)
    c = tl.load(at + 2 * cols, mask=inside, other=0)
    d = tl.load(at + 3 * cols, mask=inside, other=0)
    first, second, nibble = pruned(a, b, c, d, MAGNITUDE)
    both = tl.reshape(tl.join(tl.trans(first), tl.trans(second)), (COLUMNS, 2 * GROUPS))
    value = 2 * first_group + tl.arange(0, 2 * GROUPS)
    known = (column < cols)[:, None] & (value < rows // 2)[None, :]
    tl.store(values + column[:, None] * (rows // 2) + value[None, :], both, mask=known)
    lower, upper = tl.split(tl.reshape(tl.trans(nibble), (COLUMNS, GROUPS // 2, 2)))
    byte = first_group // 2 + tl.arange(0, GROUPS // 2)
    known = (column < cols)[:, None] & (byte < rows // 8)[None, :]
    tl.store(indices + column[:, None] * (rows // 8) + byte[None, :], (lower | (upper << 4)).to(tl.uint8), mask=known)


def sparsify_24(x: torch.Tensor, values: torch.Tensor, indices: torch.Tensor, transposed: int) -> None:
    """x, [rows, cols], or its transpose, to [n, k / 2] kept elements and [n, k / 8] bytes of four 2-bit indices."""
    bits = torch.int16 if x.element_size() == 2 else torch.int32
    magnitude = torch.iinfo(bits).max  # all bits but the sign's
    if transposed:
        rows, cols = x.shape
        # 256 rows make 32 bytes of indices a column, the least that memory moves at once.
        grid = (triton.cdiv(cols, 64), triton.cdiv(rows, 256))
        down_columns_kernel[grid](
            x.view(bits),
            values.view(bits),
            indices,
            rows,
            cols,
            MAGNITUDE=magnitude,
            GROUPS=64,
            COLUMNS=64,
            num_warps=8,
        )
    else:
        nbytes = indices.numel()
        along_rows_kernel[(triton.cdiv(nbytes, 512),)](
            x.view(bits), values.view(bits), indices, nbytes, MAGNITUDE=magnitude, BLOCK=512, num_warps=4
        )
