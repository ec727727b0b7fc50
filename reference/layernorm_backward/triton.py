"""The gradients of layer normalization in Triton: dx row by row, dweight and dbias in partial sums of some rows each.

A first kernel gives each program some rows: it writes dx and keeps its rows' share of dweight and dbias in registers.
A second kernel adds the shares up. Rows too long for registers take another way: dx first, with the mean and scale of
each row, then the column sums, for which everything is read again.
"""
# ruff: noqa: N803 - compile-time arguments are upper case in Triton

import torch
import triton
import triton.language as tl

LONGEST = 8192  # columns that one program holds
MULTIPROCESSORS = 132  # of an H100 or H200


@triton.jit
def rows_kernel(
    dy, x, weight, dx, dweights, dbiases, rows, cols, eps, ROWS: tl.constexpr, BLOCK: tl.constexpr
):  # fmt: skip
    """ROWS at a time, each in one block."""
    column = tl.arange(0, BLOCK)[None, :]
    w = tl.load(weight + column, mask=column < cols, other=0.0).to(tl.float32)
    dw = tl.zeros((ROWS, BLOCK), tl.float32)
    db = tl.zeros((ROWS, BLOCK), tl.float32)
    # In stages: the next rows are on their way while these are summed.
    for first in tl.range(tl.program_id(0) * ROWS, rows, tl.num_programs(0) * ROWS, num_stages=3):
        row = (first + tl.arange(0, ROWS)).to(tl.int64)[:, None]
        at = row * cols + column
        inside = (row < rows) & (column < cols)
        values = tl.load(x + at, mask=inside, other=0.0).to(tl.float32)
        slope = tl.load(dy + at, mask=inside, other=0.0).to(tl.float32)
        centred = tl.where(inside, values - tl.sum(values, axis=1)[:, None] / cols, 0.0)
        scale = tl.rsqrt(tl.sum(centred * centred, axis=1)[:, None] / cols + eps)
        normal = centred * scale
        g = slope * w
        pull = normal * (tl.sum(g * normal, axis=1)[:, None] / cols)
        result = scale * (g - tl.sum(g, axis=1)[:, None] / cols - pull)
        tl.store(dx + at, result.to(dx.dtype.element_ty), mask=inside)
        dw += slope * normal
        db += slope
    place = tl.arange(0, BLOCK)
    share = tl.program_id(0).to(tl.int64) * cols + place
    tl.store(dweights + share, tl.sum(dw, axis=0), mask=place < cols)
    tl.store(dbiases + share, tl.sum(db, axis=0), mask=place < cols)


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
    """Read twice: for the four sums that dx needs, then for dx.

    Squares are taken about the mean of the first block, since about zero they would cancel in rows far from it.
    """
    row = tl.program_id(0).to(tl.int64) * cols
    column = tl.arange(0, BLOCK)
    pivot = tl.sum(tl.load(x + row + column).to(tl.float32), axis=0) / BLOCK
    total = tl.zeros((BLOCK,), tl.float32)
    squares = tl.zeros((BLOCK,), tl.float32)
    slopes = tl.zeros((BLOCK,), tl.float32)
    both = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, cols, BLOCK):
        column = start + tl.arange(0, BLOCK)
        inside = column < cols
        off = tl.where(inside, tl.load(x + row + column, mask=inside, other=0.0).to(tl.float32) - pivot, 0.0)
        g = tl.load(dy + row + column, mask=inside, other=0.0).to(tl.float32)
        g *= tl.load(weight + column, mask=inside, other=0.0).to(tl.float32)
        total += off
        squares += off * off
        slopes += g
        both += g * off
    shift = tl.sum(total, axis=0) / cols
    scale = tl.rsqrt(tl.sum(squares, axis=0) / cols - shift * shift + eps)
    slope = tl.sum(slopes, axis=0) / cols
    pull = (tl.sum(both, axis=0) / cols - slope * shift) * scale * scale
    mean = pivot + shift
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
    for start in tl.range(0, rows, ROWS, num_stages=3):
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
    block = triton.next_power_of_2(cols)
    # Short rows two at a time, and by many programs: there is little to keep for each.
    at_once, each = (2, 4) if block <= 1024 else (1, 1)
    programs = min(triton.cdiv(rows, at_once), each * MULTIPROCESSORS)
    dweights, dbiases = torch.empty(2, programs, cols, dtype=torch.float32, device=x.device)
    rows_kernel[(programs,)](
        dy, x, weight, dx, dweights, dbiases, rows, cols, eps,
        ROWS=at_once, BLOCK=block, num_warps=min(max(block // 512, 1), 8),
    )  # fmt: skip
    wide = 8 if cols <= 1024 else 16
    add_kernel[(triton.cdiv(cols, wide),)](dweights, dbiases, dweight, dbias, programs, cols, ROWS=128, COLS=wide)
