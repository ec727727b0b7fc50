"""matmul_int8 in Triton: it runs, and is wrong until `compute` is filled in."""

import triton
import triton.language as tl

# a        [m, k]  int8      input
# b        [n, k]  int8      input
# a_scale  [m]     float32   input
# b_scale  [n]     float32   input
# c        [m, n]  bfloat16  output


@triton.jit
def compute(a, b, a_scale, b_scale, c, m, k, n, c_elements, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    # TODO: compute the outputs. Each program has some elements, in row-major order. Divide the work in
    # another way where that suits you better, such as a row for each program.
    tl.store(c + i, tl.zeros((BLOCK,), c.dtype.element_ty), mask=i < c_elements)


def matmul_int8(a, b, a_scale, b_scale, c):
    m, k = a.shape
    n, k = b.shape
    elements = c.numel()
    compute[(triton.cdiv(elements, 1024),)](a, b, a_scale, b_scale, c, m, k, n, elements, BLOCK=1024)
