"""Right: each program copies a tile of the picked rows."""
# ruff: noqa: N803 - compile-time arguments are upper case in Triton

import triton
import triton.language as tl


@triton.jit
def tile(table, ids, out, cols, picked, ROWS: tl.constexpr, COLS: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    col = tl.program_id(1) * COLS + tl.arange(0, COLS)
    row = tl.load(ids + i, mask=i < picked, other=0)
    there = (i < picked)[:, None] & (col < cols)[None, :]
    values = tl.load(table + row[:, None] * cols + col[None, :], mask=there)
    tl.store(out + i[:, None] * cols + col[None, :], values, mask=there)


def gather_rows_host(table, ids, out):
    picked, cols = out.shape
    tile[(triton.cdiv(picked, 32), triton.cdiv(cols, 128))](table, ids, out, cols, picked, ROWS=32, COLS=128)
