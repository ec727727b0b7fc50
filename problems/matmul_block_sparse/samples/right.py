"""Right: one program a tile of tokens and a row of blocks; where a slot is empty, nothing is loaded."""
# ruff: noqa: N803 - compile-time arguments are upper case in Triton

import triton
import triton.language as tl


@triton.jit
def tile(x, values, indices, y, m, n, k, slots, TILE: tl.constexpr, BLOCK: tl.constexpr):
    row = (tl.program_id(0) * TILE + tl.arange(0, TILE)).to(tl.int64)[:, None]
    within = tl.arange(0, BLOCK)
    block_row = tl.program_id(1).to(tl.int64)
    total = tl.zeros((TILE, BLOCK), tl.float32)
    for slot in range(slots):
        at = block_row * slots + slot
        index = tl.load(indices + at)
        along = index * BLOCK + within[None, :]
        left = tl.load(x + row * k + along, mask=(row < m) & (index >= 0), other=0.0)
        element = at * BLOCK * BLOCK + within[None, :] * BLOCK + within[:, None]
        right = tl.load(values + element, mask=(element >= 0) & (index >= 0), other=0.0)
        total = tl.dot(left, right, total)
    column = block_row * BLOCK + within[None, :]
    tl.store(y + row * n + column, total.to(y.dtype.element_ty), mask=row < m)


def matmul_block_sparse(x, values, indices, y):
    (m, k), (block_rows, slots, block, _) = x.shape, values.shape
    grid = (triton.cdiv(m, 64), block_rows)
    tile[grid](x, values, indices, y, m, block_rows * block, k, slots, TILE=64, BLOCK=block)
