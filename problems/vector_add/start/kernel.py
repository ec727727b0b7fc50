"""vector_add in Triton: it runs, and is wrong until `compute` is filled in."""

import triton
import triton.language as tl

# x    [n]  float32  input
# y    [n]  float32  input
# out  [n]  float32  output


@triton.jit
def compute(x, y, out, n, out_elements, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    # TODO: compute the outputs. Each program has some elements, in row-major order. Divide the work in
    # another way where that suits you better, such as a row for each program.
    tl.store(out + i, tl.zeros((BLOCK,), out.dtype.element_ty), mask=i < out_elements)


def vector_add(x, y, out):
    n, = x.shape
    elements = out.numel()
    compute[(triton.cdiv(elements, 1024),)](x, y, out, n, elements, BLOCK=1024)
