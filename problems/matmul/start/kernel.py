"""matmul in Triton: it runs, and is wrong until `compute` is filled in."""

import triton
import triton.language as tl

# a  [m, k]  dtype  input
# b  [k, n]  dtype  input
# c  [m, n]  dtype  output


@triton.jit
def compute(a, b, c, m, k, n, c_elements, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    # TODO: compute the outputs. Each program has some elements, in row-major order. Divide the work in
    # another way where that suits you better, such as a row for each program.
    tl.store(c + i, tl.zeros((BLOCK,), c.dtype.element_ty), mask=i < c_elements)


def matmul(a, b, c):
    m, k = a.shape
    k, n = b.shape
    elements = c.numel()
    compute[(triton.cdiv(elements, 1024),)](a, b, c, m, k, n, elements, BLOCK=1024)
