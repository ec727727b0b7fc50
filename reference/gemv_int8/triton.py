"""int8 weights times a vector in Triton: each program takes some rows, and walks along them block by block."""
# ruff: noqa: N803 - compile-time arguments are upper case in Triton

import torch
import triton
import triton.language as tl


@triton.jit
def number(weights):
    """int8 as float32: the byte, its sign flipped, becomes the low end of the mantissa of 2²³; then 2²³ + 128 goes.

    A conversion from int8 runs at an eighth of the rate of these two, and would take longer than the memory.
    """
    flipped = weights.to(tl.uint8, bitcast=True) ^ 0x80
    return (flipped.to(tl.uint32) | 0x4B000000).to(tl.float32, bitcast=True) - 8388736.0


@triton.jit
def rows_kernel(w, scale, x, y, n, k, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    row = (tl.program_id(0) * ROWS + tl.arange(0, ROWS)).to(tl.int64)
    total = tl.zeros((ROWS, BLOCK), tl.float32)
    for start in tl.range(0, k, BLOCK, num_stages=3):  # the next blocks are on their way
        along = start + tl.arange(0, BLOCK)
        inside = (row < n)[:, None] & (along < k)[None, :]
        weights = tl.load(w + row[:, None] * k + along[None, :], mask=inside, other=0)
        total += number(weights) * tl.load(x + along, mask=along < k, other=0.0).to(tl.float32)[None, :]
    factor = tl.load(scale + row, mask=row < n, other=0.0)
    tl.store(y + row, (tl.sum(total, axis=1) * factor).to(y.dtype.element_ty), mask=row < n)


def gemv_int8(w: torch.Tensor, scale: torch.Tensor, x: torch.Tensor, y: torch.Tensor) -> None:
    """y = scale · (w @ x): [n, k] int8, [n] float32, [k] float16 to [n] float16."""
    n, k = w.shape
    rows, block = (4, 512) if k <= 8192 else (2, 2048)
    rows_kernel[(triton.cdiv(n, rows),)](w, scale, x, y, n, k, ROWS=rows, BLOCK=block, num_warps=2)
