"""sparsify_24_transpose in Triton: it runs, and is wrong until `compute` is filled in."""

import triton
import triton.language as tl

# x          [rows, cols]       dtype  input
# values     [rows, cols // 2]  dtype  output
# indices    [rows, cols // 8]  uint8  output
# values_t   [cols, rows // 2]  dtype  output
# indices_t  [cols, rows // 8]  uint8  output


@triton.jit
def compute(
    x, values, indices, values_t, indices_t, rows, cols, values_elements, indices_elements, values_t_elements,
    indices_t_elements, BLOCK: tl.constexpr
):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    # TODO: compute the outputs. Each program has some elements, in row-major order. Divide the work in
    # another way where that suits you better, such as a row for each program.
    tl.store(values + i, tl.zeros((BLOCK,), values.dtype.element_ty), mask=i < values_elements)
    tl.store(indices + i, tl.zeros((BLOCK,), indices.dtype.element_ty), mask=i < indices_elements)
    tl.store(values_t + i, tl.zeros((BLOCK,), values_t.dtype.element_ty), mask=i < values_t_elements)
    tl.store(indices_t + i, tl.zeros((BLOCK,), indices_t.dtype.element_ty), mask=i < indices_t_elements)


def sparsify_24_transpose(x, values, indices, values_t, indices_t):
    rows, cols = x.shape
    elements = max(values.numel(), indices.numel(), values_t.numel(), indices_t.numel())
    compute[(triton.cdiv(elements, 1024),)](
        x, values, indices, values_t, indices_t, rows, cols, values.numel(), indices.numel(), values_t.numel(),
        indices_t.numel(), BLOCK=1024
    )
