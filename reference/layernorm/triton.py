"""Layer normalization in Triton: one program a row or two, in one block where a row fits, else block by block.

The mean is subtracted before anything is squared. A row that does not fit is read twice; the second time it comes from
L2.
"""
# ruff: noqa: N803 - compile-time arguments are upper case in Triton

import torch
import triton
import triton.language as tl

BLOCKS = (64, 256, 1024, 2048, 4096, 8192)  # few sizes, since each is compiled by itself


@triton.jit
def rows_kernel(x, weight, bias, y, rows, cols, eps, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """ROWS at a time, each in one block: read once, written once."""
    row = (tl.program_id(0) * ROWS + tl.arange(0, ROWS)).to(tl.int64)[:, None]
    column = tl.arange(0, BLOCK)[None, :]
    inside = (row < rows) & (column < cols)
    values = tl.load(x + row * cols + column, mask=inside, other=0.0).to(tl.float32)
    # Asked for before the sums, during which they arrive.
    w = tl.load(weight + column, mask=column < cols, other=0.0).to(tl.float32)
    b = tl.load(bias + column, mask=column < cols, other=0.0).to(tl.float32)
    mean = tl.sum(values, axis=1)[:, None] / cols
    centred = tl.where(column < cols, values - mean, 0.0)
    scale = tl.rsqrt(tl.sum(centred * centred, axis=1)[:, None] / cols + eps)
    tl.store(y + row * cols + column, (centred * scale * w + b).to(y.dtype.element_ty), mask=inside)


@triton.jit
def long_row_kernel(x, weight, bias, y, cols, eps, BLOCK: tl.constexpr):
    """The row is longer than a block.

    Each lane keeps the running mean of its own elements, and the sum of their squares about it (Welford 1962), so one
    pass is enough for both, with nothing to wait for between blocks.
    """
    row = tl.program_id(0).to(tl.int64) * cols
    lane = tl.arange(0, BLOCK)
    means = tl.zeros((BLOCK,), tl.float32)
    squares = tl.zeros((BLOCK,), tl.float32)
    for block in range(tl.cdiv(cols, BLOCK)):
        column = block * BLOCK + lane
        inside = column < cols
        # To be kept in L2 for the second reading, after which nobody wants it.
        values = tl.load(x + row + column, mask=inside, other=0.0, eviction_policy="evict_last").to(tl.float32)
        step = tl.where(inside, values - means, 0.0)
        means += step / (block + 1)
        squares += step * tl.where(inside, values - means, 0.0)
    counts = ((cols - lane + BLOCK - 1) // BLOCK).to(tl.float32)
    mean = tl.sum(means * counts, axis=0) / cols
    off = means - mean
    scale = tl.rsqrt(tl.sum(squares + counts * off * off, axis=0) / cols + eps)
    for block in range(tl.cdiv(cols, BLOCK)):
        column = block * BLOCK + lane
        inside = column < cols
        values = tl.load(x + row + column, mask=inside, other=0.0, eviction_policy="evict_first").to(tl.float32)
        w = tl.load(weight + column, mask=inside, other=0.0).to(tl.float32)
        b = tl.load(bias + column, mask=inside, other=0.0).to(tl.float32)
        tl.store(y + row + column, ((values - mean) * scale * w + b).to(y.dtype.element_ty), mask=inside)


def layernorm(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, y: torch.Tensor, eps: float) -> None:
    """y = each row of x normalized, times weight, plus bias: [rows, cols], [cols], [cols], [rows, cols]."""
    rows, cols = x.shape
    block = next((size for size in BLOCKS if cols <= size), BLOCKS[-1])
    if cols > block:
        long_row_kernel[(rows,)](x, weight, bias, y, cols, eps, BLOCK=block, num_warps=8)
        return
    # Few warps: they wait for each other twice a row. Two long rows at once share weight and bias.
    at_once, warps = (1, 1) if block <= 1024 else (2, 8)
    rows_kernel[(triton.cdiv(rows, at_once),)](
        x, weight, bias, y, rows, cols, eps, ROWS=at_once, BLOCK=block, num_warps=warps
    )
