"""gather_rows_host in Triton: it runs, and is wrong until `compute` is filled in."""

import triton
import triton.language as tl

# table  [rows, cols]    float32  input
# ids    [picked]        int64    input
# out    [picked, cols]  float32  output


@triton.jit
def compute(table, ids, out, rows, cols, picked, out_elements, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    # TODO: compute the outputs. Each program has some elements, in row-major order. Divide the work in
    # another way where that suits you better, such as a row for each program.
    tl.store(out + i, tl.zeros((BLOCK,), out.dtype.element_ty), mask=i < out_elements)


def gather_rows_host(table, ids, out):
    rows, cols = table.shape
    picked, = ids.shape
    elements = out.numel()
    compute[(triton.cdiv(elements, 1024),)](table, ids, out, rows, cols, picked, elements, BLOCK=1024)
