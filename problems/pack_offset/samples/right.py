"""Right: one program a block of bytes of a row."""
# ruff: noqa: N803 - compile-time arguments are upper case in Triton

import triton
import triton.language as tl


@triton.jit
def pack(x, packed, cols, nbytes, BITS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    byte = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    whole = tl.zeros((BLOCK,), tl.int32)
    for part in tl.static_range(8 // BITS):
        column = byte * (8 // BITS) + part
        offset = tl.where(column < cols, 1 << (BITS - 1), 0)
        value = tl.load(x + row * cols + column, mask=column < cols, other=0).to(tl.int32) + offset
        whole |= value << (BITS * part)
    tl.store(packed + row * nbytes + byte, whole.to(tl.uint8), mask=byte < nbytes)


def pack_offset(x, packed, width):
    rows, nbytes = packed.shape
    pack[(rows, triton.cdiv(nbytes, 1024))](x, packed, x.shape[1], nbytes, BITS=width, BLOCK=1024)
