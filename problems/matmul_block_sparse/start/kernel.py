"""matmul_block_sparse in Triton: it runs, and is wrong until `compute` is filled in."""

import triton
import triton.language as tl

# x        [m, k]                             dtype  input
# values   [n // block, slots, block, block]  dtype  input
# indices  [n // block, slots]                int32  input
# y        [m, n]                             dtype  output


@triton.jit
def compute(x, values, indices, y, m, k, slots, block, n, y_elements, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    # TODO: compute the outputs. Each program has some elements, in row-major order. Divide the work in
    # another way where that suits you better, such as a row for each program.
    tl.store(y + i, tl.zeros((BLOCK,), y.dtype.element_ty), mask=i < y_elements)


def matmul_block_sparse(x, values, indices, y):
    m, k = x.shape
    slots = values.shape[1]
    block = values.shape[2]
    m, n = y.shape
    elements = y.numel()
    compute[(triton.cdiv(elements, 1024),)](x, values, indices, y, m, k, slots, block, n, elements, BLOCK=1024)
