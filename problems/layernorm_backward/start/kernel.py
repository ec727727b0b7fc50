"""layernorm_backward in Triton: it runs, and is wrong until `compute` is filled in."""

import triton
import triton.language as tl

# dy       [rows, cols]  dtype  input
# x        [rows, cols]  dtype  input
# weight   [cols]        dtype  input
# dx       [rows, cols]  dtype  output
# dweight  [cols]        dtype  output
# dbias    [cols]        dtype  output


@triton.jit
def compute(
    dy, x, weight, dx, dweight, dbias, eps, rows, cols, dx_elements, dweight_elements, dbias_elements,
    BLOCK: tl.constexpr
):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    # TODO: compute the outputs. Each program has some elements, in row-major order. Divide the work in
    # another way where that suits you better, such as a row for each program.
    tl.store(dx + i, tl.zeros((BLOCK,), dx.dtype.element_ty), mask=i < dx_elements)
    tl.store(dweight + i, tl.zeros((BLOCK,), dweight.dtype.element_ty), mask=i < dweight_elements)
    tl.store(dbias + i, tl.zeros((BLOCK,), dbias.dtype.element_ty), mask=i < dbias_elements)


def layernorm_backward(dy, x, weight, dx, dweight, dbias, eps):
    rows, cols = dy.shape
    elements = max(dx.numel(), dweight.numel(), dbias.numel())
    compute[(triton.cdiv(elements, 1024),)](
        dy, x, weight, dx, dweight, dbias, eps, rows, cols, dx.numel(), dweight.numel(), dbias.numel(), BLOCK=1024
    )
