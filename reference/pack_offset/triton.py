"""Packing with an offset in Triton: each program packs a block of bytes, whose numbers it loads as one stretch.

Numbers that meet in a byte have disjoint bits, so their sum is their union: a reduction over the last axis of a tile.
Where every row fills its last byte, all rows are one long row.
"""
# ruff: noqa: N803 - compile-time arguments are upper case in Triton

import torch
import triton
import triton.language as tl


@triton.jit
def pack_kernel(x, packed, cols, nbytes, blocks, BITS: tl.constexpr, BLOCK: tl.constexpr):
    per: tl.constexpr = 8 // BITS
    row = (tl.program_id(0) // blocks).to(tl.int64)
    start = (tl.program_id(0) % blocks).to(tl.int64) * BLOCK
    byte = start + tl.arange(0, BLOCK)
    column = start * per + tl.arange(0, BLOCK * per)
    inside = column < cols
    value = tl.load(x + row * cols + column, mask=inside, other=0).to(tl.int32)
    value = tl.where(inside, value + (1 << (BITS - 1)), 0)
    parts = tl.reshape(value, (BLOCK, per)) << (BITS * tl.arange(0, per))[None, :]
    tl.store(packed + row * nbytes + byte, tl.sum(parts, axis=1).to(tl.uint8), mask=byte < nbytes)


def pack_offset(x: torch.Tensor, packed: torch.Tensor, width: int) -> None:
    """[rows, cols] int8 to [rows, ceil(cols · width / 8)] uint8, the first number in the low bits."""
    (rows, cols), nbytes = x.shape, packed.shape[1]
    if cols * width % 8 == 0:
        rows, cols, nbytes = 1, rows * cols, rows * nbytes
    block = 4096 * width // 8  # bytes, of 4096 numbers
    blocks = triton.cdiv(nbytes, block)
    pack_kernel[(rows * blocks,)](x, packed, cols, nbytes, blocks, BITS=width, BLOCK=block, num_warps=8)
