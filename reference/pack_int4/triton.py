"""int4 packed in Triton: each program packs a block of bytes, from pairs of neighbours that were loaded together."""
# ruff: noqa: N803 - compile-time arguments are upper case in Triton

import torch
import triton
import triton.language as tl


@triton.jit
def even_kernel(x, packed, n, BLOCK: tl.constexpr):
    """All rows have whole bytes, so the matrix is one long row: contiguous loads, split in registers."""
    start = tl.program_id(0).to(tl.int64) * BLOCK
    element = 2 * start + tl.arange(0, 2 * BLOCK)
    value = tl.load(x + element, mask=element < 2 * n, other=0).to(tl.uint8, bitcast=True) & 0xF
    low, high = tl.split(tl.reshape(value, (BLOCK, 2)))
    byte = start + tl.arange(0, BLOCK)
    tl.store(packed + byte, low | (high << 4), mask=byte < n)


@triton.jit
def odd_kernel(x, packed, cols, BLOCK: tl.constexpr):
    """The last byte of each row has no second half."""
    row = tl.program_id(0).to(tl.int64)
    byte = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    low = tl.load(x + row * cols + 2 * byte, mask=2 * byte < cols, other=0).to(tl.uint8, bitcast=True) & 0xF
    high = tl.load(x + row * cols + 2 * byte + 1, mask=2 * byte + 1 < cols, other=0).to(tl.uint8, bitcast=True) & 0xF
    tl.store(packed + row * tl.cdiv(cols, 2) + byte, low | (high << 4), mask=2 * byte < cols)


def pack_int4(x: torch.Tensor, packed: torch.Tensor) -> None:
    """[rows, cols] int8, -8 to 7, to [rows, ceil(cols / 2)] uint8: even columns in the low half of a byte."""
    rows, cols = x.shape
    if cols % 2 == 0:
        even_kernel[(triton.cdiv(packed.numel(), 4096),)](x, packed, packed.numel(), BLOCK=4096)
    else:
        odd_kernel[(rows, triton.cdiv(packed.shape[1], 2048))](x, packed, cols, BLOCK=2048)
