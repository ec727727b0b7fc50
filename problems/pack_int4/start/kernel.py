"""pack_int4 in Triton: it runs, and is wrong until `compute` is filled in."""

import triton
import triton.language as tl

# x       [rows, cols]               int8   input
# packed  [rows, ceil_div(cols, 2)]  uint8  output


@triton.jit
def compute(x, packed, rows, cols, packed_elements, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    # TODO: compute the outputs. Each program has some elements, in row-major order. Divide the work in
    # another way where that suits you better, such as a row for each program.
    tl.store(packed + i, tl.zeros((BLOCK,), packed.dtype.element_ty), mask=i < packed_elements)


def pack_int4(x, packed):
    rows, cols = x.shape
    elements = packed.numel()
    compute[(triton.cdiv(elements, 1024),)](x, packed, rows, cols, elements, BLOCK=1024)
