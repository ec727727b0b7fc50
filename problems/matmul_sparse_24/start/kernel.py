"""matmul_sparse_24 in Triton: it runs, and is wrong until `compute` is filled in."""

import torch
import triton
import triton.language as tl

# x        [m, k]       dtype  input
# values   [n, k // 2]  dtype  input
# indices  [n, k // 8]  uint8  input
# y        [m, n]       dtype  output


@triton.jit
def compute(x, values, indices, y, m, k, n, y_elements, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    # TODO: compute the outputs. Each program has some elements, in row-major order. Divide the work in
    # another way where that suits you better, such as a row for each program.
    tl.store(y + i, tl.zeros((BLOCK,), y.dtype.element_ty), mask=i < y_elements)


def matmul_sparse_24(x, values, indices):
    m, k = x.shape
    n = values.shape[0]
    y = torch.empty(m, n, dtype=x.dtype, device=x.device)
    elements = y.numel()
    compute[(triton.cdiv(elements, 1024),)](x, values, indices, y, m, k, n, elements, BLOCK=1024)
    return y
