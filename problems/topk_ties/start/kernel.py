"""topk_ties in Triton: it runs, and is wrong until `compute` is filled in."""

import triton
import triton.language as tl

# x        [rows, cols]  dtype  input
# values   [rows, top]   dtype  output
# indices  [rows, top]   int32  output


@triton.jit
def compute(x, values, indices, k, rows, cols, top, values_elements, indices_elements, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    # TODO: compute the outputs. Each program has some elements, in row-major order. Divide the work in
    # another way where that suits you better, such as a row for each program.
    tl.store(values + i, tl.zeros((BLOCK,), values.dtype.element_ty), mask=i < values_elements)
    tl.store(indices + i, tl.zeros((BLOCK,), indices.dtype.element_ty), mask=i < indices_elements)


def topk_ties(x, values, indices, k):
    rows, cols = x.shape
    rows, top = values.shape
    elements = max(values.numel(), indices.numel())
    compute[(triton.cdiv(elements, 1024),)](
        x, values, indices, k, rows, cols, top, values.numel(), indices.numel(), BLOCK=1024
    )
