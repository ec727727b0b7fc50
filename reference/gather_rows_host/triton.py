"""A lookup of rows in Triton: each program copies a tile of the picked rows."""
# ruff: noqa: N803 - compile-time arguments are upper case in Triton

import torch
import triton
import triton.language as tl

ROWS, COLS = 32, 128  # 16 KiB of reads in flight for each program, 512 bytes of a row


@triton.jit
def tile_kernel(table, ids, out, cols, picked, ROWS: tl.constexpr, COLS: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    col = tl.program_id(1) * COLS + tl.arange(0, COLS)
    row = tl.load(ids + i, mask=i < picked, other=0)
    there = (i < picked)[:, None] & (col < cols)[None, :]
    values = tl.load(table + row[:, None] * cols + col[None, :], mask=there)
    tl.store(out + i[:, None] * cols + col[None, :], values, mask=there)


def gather_rows_host(table: torch.Tensor, ids: torch.Tensor, out: torch.Tensor) -> None:
    """out[i] = table[ids[i]]: [rows, cols] float32 and [picked] int64 → [picked, cols]."""
    picked, cols = out.shape
    grid = (triton.cdiv(picked, ROWS), triton.cdiv(cols, COLS))
    tile_kernel[grid](table, ids, out, cols, picked, ROWS=ROWS, COLS=COLS)
