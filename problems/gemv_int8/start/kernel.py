"""gemv_int8 in Triton: it runs, and is wrong until `compute` is filled in."""

import triton
import triton.language as tl

# w      [n, k]  int8     input
# scale  [n]     float32  input
# x      [k]     float16  input
# y      [n]     float16  output


@triton.jit
def compute(w, scale, x, y, n, k, y_elements, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    # TODO: compute the outputs. Each program has some elements, in row-major order. Divide the work in
    # another way where that suits you better, such as a row for each program.
    tl.store(y + i, tl.zeros((BLOCK,), y.dtype.element_ty), mask=i < y_elements)


def gemv_int8(w, scale, x, y):
    n, k = w.shape
    elements = y.numel()
    compute[(triton.cdiv(elements, 1024),)](w, scale, x, y, n, k, elements, BLOCK=1024)
