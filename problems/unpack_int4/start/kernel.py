"""unpack_int4 in Triton: it runs, and is wrong until `compute` is filled in."""

import triton
import triton.language as tl

# packed  [rows, groups * size // 2]  uint8  input
# scale   [rows, groups]              dtype  input
# zero    [rows, groups]              int8   input
# y       [rows, groups * size]       dtype  output


@triton.jit
def compute(packed, scale, zero, y, rows, groups, y_elements, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    # TODO: compute the outputs. Each program has some elements, in row-major order. Divide the work in
    # another way where that suits you better, such as a row for each program.
    tl.store(y + i, tl.zeros((BLOCK,), y.dtype.element_ty), mask=i < y_elements)


def unpack_int4(packed, scale, zero, y):
    rows = packed.shape[0]
    rows, groups = scale.shape
    elements = y.numel()
    compute[(triton.cdiv(elements, 1024),)](packed, scale, zero, y, rows, groups, elements, BLOCK=1024)
