"""The gradients of layer normalization in Triton: dx row by row, dweight and dbias in partial sums of some rows each.

A first kernel gives each program a run of rows: it writes dx and keeps its rows' share of dweight and dbias in registers. A second
kernel adds the shares up. Rows too long for registers take another way: their mean and scale are found first, then dx, then the
column sums.
"""
# ruff: noqa: N803 - compile-time arguments are upper case in Triton

import torch
import triton
import triton.language as tl

LONGEST = 8192  # columns that one program holds
PROGRAMS = 264  # twice the multiprocessors of an H100


@triton.jit
def rows_kernel(dy, x, weight, dx, dweights, dbiases, rows, cols, eps, BLOCK: tl.constexpr):
    column = tl.arange(0, BLOCK)
    inside = column < cols
    w = tl.load(weight + column, mask=inside, other=0.0).to(tl.float32)
    dw = tl.zeros((BLOCK,), tl.float32)
    db = tl.zeros((BLOCK,), tl.float32)
    for r in range(tl.program_id(0), rows, tl.num_programs(0)):
        row = tl.cast(r, tl.int64) * cols
        values = tl.load(x + row + column, mask=inside, other=0.0).to(tl.float32)
        slope = tl.load(dy + row + column, mask=inside, other=0.0).to(tl.float32)
        centred = tl.where(inside, values - tl.sum(values, axis=0) / cols, 0.0)
        scale = tl.rsqrt(tl.sum(centred * centred, axis=0) / cols + eps)
        normal = centred * scale
        g = slope * w
        result = scale * (g - tl.sum(g, axis=0) / cols - normal * (tl.sum(g * normal, axis=0) / cols))
        tl.store(dx + row + column, result.to(dx.dtype.element_ty), mask=inside)
        dw += slope * normal
        db += slope
    share = tl.program_id(0).to(tl.int64) * cols
    tl.store(dweights + share + column, dw, mask=inside)
    tl.store(dbiases + share + column, db, mask=inside)


@triton.jit
def add_kernel(dweights, dbiases, dweight, dbias, shares, cols, ROWS: tl.constexpr, COLS: tl.constexpr):
    column = tl.program_id(0) * COLS + tl.arange(0, COLS)
    dw = tl.zeros((ROWS, COLS), tl.float32)
    db = tl.zeros((ROWS, COLS), tl.float32)
    for start in range(0, shares, ROWS):
        share = start + tl.arange(0, ROWS)
        at = share[:, None].to(tl.int64) * cols + column[None, :]
        inside = (share < shares)[:, None] & (column < cols)[None, :]
        dw += tl.load(dweights + at, mask=inside, other=0.0)
        db += tl.load(dbiases + at, mask=inside, other=0.0)
    tl.store(dweight + column, tl.sum(dw, axis=0).to(dweight.dtype.element_ty), mask=column < cols)
    tl.store(dbias + column, tl.sum(db, axis=0).to(dbias.dtype.element_ty), mask=column < cols)


@triton.jit
def long_row_kernel(dy, x, weight, dx, means, scales, cols, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * cols
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, cols, BLOCK):
        column = start + tl.arange(0, BLOCK)
        total += tl.load(x + row + column, mask=column < cols, other=0.0).to(tl.float32)
    mean = tl.sum(total, axis=0) / cols
    squares = tl.zeros((BLOCK,), tl.float32)
    slopes = tl.zeros((BLOCK,), tl.float32)
    both = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, cols, BLOCK):
        column = start + tl.arange(0, BLOCK)
        inside = column < cols
        centred = tl.where(inside, tl.load(x + row + column, mask=inside, other=0.0).to(tl.float32) - mean, 0.0)
        g = tl.load(dy + row + column, mask=inside, other=0.0).to(tl.float32)
        g *= tl.load(weight + column, mask=inside, other=0.0).to(tl.float32)
        squares += centred * centred
        slopes += g
        both += g * centred
    scale = tl.rsqrt(tl.sum(squares, axis=0) / cols + eps)
    slope = tl.sum(slopes, axis=0) / cols
    pull = tl.sum(both, axis=0) / cols * scale * scale
    for start in range(0, cols, BLOCK):
        column = start + tl.arange(0, BLOCK)
        inside = column < cols
        centred = tl.load(x + row + column, mask=inside, other=0.0).to(tl.float32) - mean
        g = tl.load(dy + row + column, mask=inside, other=0.0).to(tl.float32)
        g *= tl.load(weight + column, mask=inside, other=0.0).to(tl.float32)
        result = scale * (g - slope - centred * pull)
        tl.store(dx + row + column, result.to(dx.dtype.element_ty), mask=inside)
    tl.store(means + tl.program_id(0), mean)
    tl.store(scales + tl.program_id(0), scale)


@triton.jit
def columns_kernel(dy, x, means, scales, dweight, dbias, rows, cols, ROWS: tl.constexpr, COLS: tl.constexpr):
    column = tl.program_id(0) * COLS + tl.arange(0, COLS)
    dw = tl.zeros((ROWS, COLS), tl.float32)
    db = tl.zeros((ROWS, COLS), tl.float32)
    for start in range(0, rows, ROWS):
        row = start + tl.arange(0, ROWS)
        at = row[:, None].to(tl.int64) * cols + column[None, :]
        inside = (row < rows)[:, None] & (column < cols)[None, :]
        slope = tl.load(dy + at, mask=inside, other=0.0).to(tl.float32)
        values = tl.load(x + at, mask=inside, other=0.0).to(tl.float32)
        mean = tl.load(means + row, mask=row < rows, other=0.0)[:, None]
        scale = tl.load(scales + row, mask=row < rows, other=0.0)[:, None]
        dw += slope * (values - mean) * scale
        db += slope
    tl.store(dweight + column, tl.sum(dw, axis=0).to(dweight.dtype.element_ty), mask=column < cols)
    tl.store(dbias + column, tl.sum(db, axis=0).to(dbias.dtype.element_ty), mask=column < cols)


def layernorm_backward(
    dy: torch.Tensor, x: torch.Tensor, weight: torch.Tensor,
    dx: torch.Tensor, dweight: torch.Tensor, dbias: torch.Tensor, eps: float,
) -> None:  # fmt: skip
    """dx [rows, cols], dweight and dbias [cols], of dy and x [rows, cols] and weight [cols]."""
    rows, cols = x.shape
    if cols > LONGEST:
        means, scales = torch.empty(2, rows, dtype=torch.float32, device=x.device)
        long_row_kernel[(rows,)](dy, x, weight, dx, means, scales, cols, eps, BLOCK=LONGEST, num_warps=16)
        columns_kernel[(triton.cdiv(cols, 64),)](dy, x, means, scales, dweight, dbias, rows, cols, ROWS=32, COLS=64)
        return
    programs = min(rows, PROGRAMS)
    dweights, dbiases = torch.empty(2, programs, cols, dtype=torch.float32, device=x.device)
    block = triton.next_power_of_2(cols)
    warps = min(max(block // 256, 1), 16)
    rows_kernel[(programs,)](dy, x, weight, dx, dweights, dbiases, rows, cols, eps, BLOCK=block, num_warps=warps)
    add_kernel[(triton.cdiv(cols, 32),)](dweights, dbiases, dweight, dbias, programs, cols, ROWS=64, COLS=32)
