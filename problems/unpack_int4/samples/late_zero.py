"""Wrong: the zero point is subtracted after scaling, as if it were a number and not a step of the grid."""
# ruff: noqa: N803 - compile-time arguments are upper case in Triton

import triton
import triton.language as tl


@triton.jit
def signed(half):
    return (half.to(tl.int32) ^ 8) - 8  # 15 becomes -1


@triton.jit
def row(packed, scale, zero, y, groups, size, nbytes, BLOCK: tl.constexpr):
    line = tl.program_id(0).to(tl.int64)
    byte = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = byte < nbytes
    both = tl.load(packed + line * nbytes + byte, mask=inside, other=0)
    group = line * groups + 2 * byte // size
    factor = tl.load(scale + group, mask=inside, other=0.0).to(tl.float32)
    offset = tl.load(zero + group, mask=inside, other=0).to(tl.int32)
    low = signed(both & 0xF).to(tl.float32) * factor - offset
    high = signed(both >> 4).to(tl.float32) * factor - offset
    to = y + 2 * (line * nbytes + byte)
    tl.store(to, low.to(y.dtype.element_ty), mask=inside)
    tl.store(to + 1, high.to(y.dtype.element_ty), mask=inside)


def unpack_int4(packed, scale, zero, y):
    (rows, nbytes), groups = packed.shape, scale.shape[1]
    row[(rows, triton.cdiv(nbytes, 256))](packed, scale, zero, y, groups, y.shape[1] // groups, nbytes, BLOCK=256)
