"""Layer normalization in Triton: one program a row, in one block where the row fits, else block by block.

The mean is subtracted before anything is squared. A row that does not fit is read three times; the second and the third
time it comes from L2.
"""
# ruff: noqa: N803 - compile-time arguments are upper case in Triton

import torch
import triton
import triton.language as tl

BLOCKS = (64, 256, 1024, 2048, 4096, 8192, 16384)  # few sizes, since each is compiled by itself


@triton.jit
def row_kernel(x, weight, bias, y, cols, eps, BLOCK: tl.constexpr):
    """The row fits into one block: read once, written once."""
    row = tl.program_id(0).to(tl.int64) * cols
    column = tl.arange(0, BLOCK)
    inside = column < cols
    values = tl.load(x + row + column, mask=inside, other=0.0).to(tl.float32)
    mean = tl.sum(values, axis=0) / cols
    centred = tl.where(inside, values - mean, 0.0)
    scale = tl.rsqrt(tl.sum(centred * centred, axis=0) / cols + eps)
    w = tl.load(weight + column, mask=inside, other=0.0).to(tl.float32)
    b = tl.load(bias + column, mask=inside, other=0.0).to(tl.float32)
    tl.store(y + row + column, (centred * scale * w + b).to(y.dtype.element_ty), mask=inside)


@triton.jit
def long_row_kernel(x, weight, bias, y, cols, eps, BLOCK: tl.constexpr):
    """The row is longer than a block: the mean, then the variance, then the output."""
    row = tl.program_id(0).to(tl.int64) * cols
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, cols, BLOCK):
        column = start + tl.arange(0, BLOCK)
        total += tl.load(x + row + column, mask=column < cols, other=0.0).to(tl.float32)
    mean = tl.sum(total, axis=0) / cols
    squares = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, cols, BLOCK):
        column = start + tl.arange(0, BLOCK)
        values = tl.load(x + row + column, mask=column < cols, other=0.0).to(tl.float32)
        centred = tl.where(column < cols, values - mean, 0.0)
        squares += centred * centred
    scale = tl.rsqrt(tl.sum(squares, axis=0) / cols + eps)
    for start in range(0, cols, BLOCK):
        column = start + tl.arange(0, BLOCK)
        inside = column < cols
        values = tl.load(x + row + column, mask=inside, other=0.0).to(tl.float32)
        w = tl.load(weight + column, mask=inside, other=0.0).to(tl.float32)
        b = tl.load(bias + column, mask=inside, other=0.0).to(tl.float32)
        tl.store(y + row + column, ((values - mean) * scale * w + b).to(y.dtype.element_ty), mask=inside)


def layernorm(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, y: torch.Tensor, eps: float) -> None:
    """y = each row of x normalized, times weight, plus bias: [rows, cols], [cols], [cols], [rows, cols]."""
    rows, cols = x.shape
    block = next((size for size in BLOCKS if cols <= size), BLOCKS[-1])
    kernel = row_kernel if cols <= block else long_row_kernel
    kernel[(rows,)](x, weight, bias, y, cols, eps, BLOCK=block, num_warps=min(max(block // 512, 1), 16))
