"""sparsify_24 in Triton: it runs, and is wrong until `compute` is filled in."""

import triton
import triton.language as tl

# x        [rows, cols]                                                               dtype  input
# values   [(1 - flip) * rows + flip * cols, ((1 - flip) * cols + flip * rows) // 2]  dtype  output
# indices  [(1 - flip) * rows + flip * cols, ((1 - flip) * cols + flip * rows) // 8]  uint8  output


@triton.jit
def compute(x, values, indices, transposed, rows, cols, values_elements, indices_elements, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    # TODO: compute the outputs. Each program has some elements, in row-major order. Divide the work in
    # another way where that suits you better, such as a row for each program.
    tl.store(values + i, tl.zeros((BLOCK,), values.dtype.element_ty), mask=i < values_elements)
    tl.store(indices + i, tl.zeros((BLOCK,), indices.dtype.element_ty), mask=i < indices_elements)


def sparsify_24(x, values, indices, transposed):
    rows, cols = x.shape
    elements = max(values.numel(), indices.numel())
    compute[(triton.cdiv(elements, 1024),)](
        x, values, indices, transposed, rows, cols, values.numel(), indices.numel(), BLOCK=1024
    )
