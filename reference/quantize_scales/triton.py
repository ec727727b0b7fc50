"""Dynamic quantization in Triton: a row stays in registers; the tensor and channels take a kernel for peaks first.

Without scales of their own, rows and columns wait for all others: partial peaks go to memory, and the second kernel
reduces them again in each program, which takes no atomics. It finds most of x in L2.
"""
# ruff: noqa: N803 - compile-time arguments are upper case in Triton

import torch
import triton
import triton.language as tl

LONG = 8192  # more elements of a row than these are not kept in registers
PARTS = 512  # partial peaks of the tensor


@triton.jit
def per_unit(peak):
    """127 / peak, of which a step is a product: a division for each element takes longer than the memory.

    An error of a few units in float32's last place moves no quotient of float16 numbers across a half.
    """
    return tl.where(peak > 0.0, 127.0 / peak, 0.0)


@triton.jit
def steps(value, factor):
    """value · factor to the nearest integer, ties to even."""
    # Beside 1.5 · 2²³ a float32 has no room for fractions.
    return ((value * factor + 12582912.0) - 12582912.0).to(tl.int8)


@triton.jit
def row_kernel(x, q, scale, k, BLOCK: tl.constexpr):
    """A row of one block: it is read once."""
    row, along = tl.program_id(0).to(tl.int64), tl.arange(0, BLOCK)
    value = tl.load(x + row * k + along, mask=along < k, other=0.0)
    peak = tl.max(tl.abs(value), 0).to(tl.float32)
    tl.store(scale + row, peak / 127.0)
    tl.store(q + row * k + along, steps(value.to(tl.float32), per_unit(peak)), mask=along < k)


@triton.jit
def long_row_kernel(x, q, scale, k, BLOCK: tl.constexpr):
    """A row of several blocks: it is read twice, the second time from a cache."""
    row = tl.program_id(0).to(tl.int64)
    largest = tl.zeros((BLOCK,), tl.float16)
    for start in range(0, k, BLOCK):
        along = start + tl.arange(0, BLOCK)
        value = tl.load(x + row * k + along, mask=along < k, other=0.0, eviction_policy="evict_last")
        largest = tl.maximum(largest, tl.abs(value))
    peak = tl.max(largest, 0).to(tl.float32)
    tl.store(scale + row, peak / 127.0)
    for start in range(0, k, BLOCK):
        along = start + tl.arange(0, BLOCK)
        value = tl.load(x + row * k + along, mask=along < k, other=0.0, eviction_policy="evict_first").to(tl.float32)
        tl.store(q + row * k + along, steps(value, per_unit(peak)), mask=along < k)


@triton.jit
def flat_peak_kernel(x, parts, n, BLOCK: tl.constexpr):
    largest = tl.zeros((BLOCK,), tl.float16)
    for start in range(tl.program_id(0).to(tl.int64) * BLOCK, n, tl.num_programs(0) * BLOCK):
        at = start + tl.arange(0, BLOCK)
        largest = tl.maximum(largest, tl.abs(tl.load(x + at, mask=at < n, other=0.0)))
    tl.store(parts + tl.program_id(0), tl.max(largest, 0).to(tl.float32))


@triton.jit
def flat_kernel(x, q, scale, parts, n, PARTS: tl.constexpr, BLOCK: tl.constexpr):
    peak = tl.max(tl.load(parts + tl.arange(0, PARTS)), 0)
    block = tl.num_programs(0) - 1 - tl.program_id(0)  # from the end, which is in L2
    at = block.to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < n, other=0.0).to(tl.float32)
    tl.store(q + at, steps(value, per_unit(peak)), mask=at < n)
    if tl.program_id(0) == 0:
        tl.store(scale, peak / 127.0)


@triton.jit
def column_peak_kernel(x, parts, m, k, ROWS: tl.constexpr, COLS: tl.constexpr):
    """A strip of COLS columns, and every num_programs(1)-th tile of its rows."""
    column = tl.program_id(0) * COLS + tl.arange(0, COLS)
    largest = tl.zeros((ROWS, COLS), tl.float16)
    for start in range(tl.program_id(1).to(tl.int64) * ROWS, m, tl.num_programs(1) * ROWS):
        row = start + tl.arange(0, ROWS)
        inside = (row < m)[:, None] & (column < k)[None, :]
        largest = tl.maximum(largest, tl.abs(tl.load(x + row[:, None] * k + column[None, :], mask=inside, other=0.0)))
    tl.store(parts + tl.program_id(1) * k + column, tl.max(largest, 0).to(tl.float32), mask=column < k)


@triton.jit
def column_kernel(x, q, scale, parts, m, k, PARTS: tl.constexpr, ROWS: tl.constexpr, COLS: tl.constexpr):
    column = tl.program_id(0) * COLS + tl.arange(0, COLS)
    part = parts + tl.arange(0, PARTS)[:, None] * k + column[None, :]
    peak = tl.max(tl.load(part, mask=(column < k)[None, :], other=0.0), 0)
    block = tl.num_programs(1) - 1 - tl.program_id(1)
    row = (block * ROWS + tl.arange(0, ROWS)).to(tl.int64)
    inside = (row < m)[:, None] & (column < k)[None, :]
    at = row[:, None] * k + column[None, :]
    value = tl.load(x + at, mask=inside, other=0.0).to(tl.float32)
    tl.store(q + at, steps(value, per_unit(peak)[None, :]), mask=inside)
    if tl.program_id(1) == 0:
        tl.store(scale + column, peak / 127.0, mask=column < k)


def quantize_scales(x: torch.Tensor, q: torch.Tensor, scale: torch.Tensor, by: int) -> None:
    """[m, k] float16 to [m, k] int8 and [1 or m, 1 or k] float32."""
    (m, k), n = x.shape, x.numel()
    if by == 1 and k <= LONG:
        block = triton.next_power_of_2(k)
        row_kernel[(m,)](x, q, scale, k, BLOCK=block, num_warps=max(1, block // 512))
    elif by == 1:
        long_row_kernel[(m,)](x, q, scale, k, BLOCK=2048, num_warps=8)
    elif by == 0:
        parts = torch.empty(PARTS, dtype=torch.float32, device=x.device)
        flat_peak_kernel[(PARTS,)](x, parts, n, BLOCK=8192, num_warps=16)
        flat_kernel[(triton.cdiv(n, 4096),)](x, q, scale, parts, n, PARTS=PARTS, BLOCK=4096, num_warps=4)
    else:
        parts = torch.empty(8, k, dtype=torch.float32, device=x.device)
        column_peak_kernel[(triton.cdiv(k, 64), 8)](x, parts, m, k, ROWS=64, COLS=64, num_warps=8)
        grid = triton.cdiv(k, 256), triton.cdiv(m, 16)
        column_kernel[grid](x, q, scale, parts, m, k, PARTS=8, ROWS=16, COLS=256, num_warps=4)
