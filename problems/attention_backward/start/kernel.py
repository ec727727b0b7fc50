"""attention_backward in Triton: it runs, and is wrong until `compute` is filled in."""

import triton
import triton.language as tl

# dout  [batch, heads, length, size]     dtype  input
# q     [batch, heads, length, size]     dtype  input
# k     [batch, kv_heads, length, size]  dtype  input
# v     [batch, kv_heads, length, size]  dtype  input
# dq    [batch, heads, length, size]     dtype  output
# dk    [batch, kv_heads, length, size]  dtype  output
# dv    [batch, kv_heads, length, size]  dtype  output


@triton.jit
def compute(
    dout, q, k, v, dq, dk, dv, is_causal, batch, heads, length, size, kv_heads, dq_elements, dk_elements,
    dv_elements, BLOCK: tl.constexpr
):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    # TODO: compute the outputs. Each program has some elements, in row-major order. Divide the work in
    # another way where that suits you better, such as a row for each program.
    tl.store(dq + i, tl.zeros((BLOCK,), dq.dtype.element_ty), mask=i < dq_elements)
    tl.store(dk + i, tl.zeros((BLOCK,), dk.dtype.element_ty), mask=i < dk_elements)
    tl.store(dv + i, tl.zeros((BLOCK,), dv.dtype.element_ty), mask=i < dv_elements)


def attention_backward(dout, q, k, v, dq, dk, dv, is_causal):
    batch, heads, length, size = dout.shape
    batch, kv_heads, length, size = k.shape
    elements = max(dq.numel(), dk.numel(), dv.numel())
    compute[(triton.cdiv(elements, 1024),)](
        dout, q, k, v, dq, dk, dv, is_causal, batch, heads, length, size, kv_heads, dq.numel(), dk.numel(), dv.numel(),
        BLOCK=1024
    )
