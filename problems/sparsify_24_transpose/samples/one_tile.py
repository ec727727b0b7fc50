"""Right: one program a tile of 32 × 32, read once, and pruned in both directions."""
# ruff: noqa: N803 - compile-time arguments are upper case in Triton

import torch
import triton
import triton.language as tl


@triton.jit
def prune(tile, values, indices, row, byte, n, k, SIDE: tl.constexpr, MAGNITUDE: tl.constexpr):
    """The rows of a tile: SIDE of them from `row` on, to SIDE / 8 bytes of indices each from `byte` on."""
    even, odd = tl.split(tl.reshape(tile, (SIDE, SIDE // 4, 2, 2)))
    a, c = tl.split(even)
    b, d = tl.split(odd)
    p, q, r, s = a & MAGNITUDE, b & MAGNITUDE, c & MAGNITUDE, d & MAGNITUDE
    ab, ac, ad = (p >= q).to(tl.int32), (p >= r).to(tl.int32), (p >= s).to(tl.int32)
    bc, bd, cd = (q >= r).to(tl.int32), (q >= s).to(tl.int32), (r >= s).to(tl.int32)
    keep_a, keep_b = ab + ac + ad >= 2, 1 - ab + bc + bd >= 2
    keep_c, keep_d = 2 - ac - bc + cd >= 2, 3 - ad - bd - cd >= 2
    first = tl.where(keep_a, a, tl.where(keep_b, b, c))
    second = tl.where(keep_d, d, tl.where(keep_c, c, b))
    low, high = tl.where(keep_a, 0, tl.where(keep_b, 1, 2)), tl.where(keep_d, 3, tl.where(keep_c, 2, 1))
    down = row + tl.arange(0, SIDE)[:, None]
    over = 4 * byte + tl.arange(0, SIDE // 2)[None, :]
    kept = tl.reshape(tl.join(first, second), (SIDE, SIDE // 2))
    tl.store(values + down * (k // 2) + over, kept, mask=(down < n) & (over < k // 2))
    lower, upper = tl.split(tl.reshape(low | (high << 2), (SIDE, SIDE // 8, 2)))
    over = byte + tl.arange(0, SIDE // 8)[None, :]
    tl.store(indices + down * (k // 8) + over, (lower | (upper << 4)).to(tl.uint8), mask=(down < n) & (over < k // 8))


@triton.jit
def both(x, values, indices, values_t, indices_t, rows, cols, SIDE: tl.constexpr, MAGNITUDE: tl.constexpr):
    row, column = tl.program_id(0) * SIDE, tl.program_id(1) * SIDE
    down, over = row + tl.arange(0, SIDE)[:, None], column + tl.arange(0, SIDE)[None, :]
    tile = tl.load(x + down * cols + over, mask=(down < rows) & (over < cols), other=0)
    prune(tile, values, indices, row, column // 8, rows, cols, SIDE, MAGNITUDE)
    prune(tl.trans(tile), values_t, indices_t, column, row // 8, cols, rows, SIDE, MAGNITUDE)


def sparsify_24_transpose(x, values, indices, values_t, indices_t):
    (rows, cols), bits = x.shape, torch.int16 if x.element_size() == 2 else torch.int32
    grid = (triton.cdiv(rows, 32), triton.cdiv(cols, 32))
    outputs = (values.view(bits), indices, values_t.view(bits), indices_t)
    both[grid](x.view(bits), *outputs, rows, cols, SIDE=32, MAGNITUDE=torch.iinfo(bits).max)
