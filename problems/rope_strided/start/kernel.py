"""rope_strided in Triton: it runs, and is wrong until `compute` is filled in."""

import triton
import triton.language as tl

# q          [tokens, heads, dim] strides [3 * heads * dim, dim, 1]  dtype  inout
# positions  [tokens]                                                int32  input
# table      [1024, dim]                                             dtype  input


@triton.jit
def compute(
    q, positions, table, tokens, heads, dim, q_elements, q_size0, q_size1, q_size2, q_stride0, q_stride1,
    q_stride2, BLOCK: tl.constexpr
):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    # TODO: compute the outputs. Each program has some elements, in row-major order. Divide the work in
    # another way where that suits you better, such as a row for each program.
    q_place = i // (q_size1 * q_size2) * q_stride0 + i // q_size2 % q_size1 * q_stride1 + i % q_size2 * q_stride2
    q_value = tl.load(q + q_place, mask=i < q_elements)
    tl.store(q + q_place, q_value, mask=i < q_elements)


def rope_strided(q, positions, table):
    tokens, heads, dim = q.shape
    elements = q.numel()
    compute[(triton.cdiv(elements, 1024),)](
        q, positions, table, tokens, heads, dim, elements, q.shape[0], q.shape[1], q.shape[2], q.stride(0),
        q.stride(1), q.stride(2), BLOCK=1024
    )
