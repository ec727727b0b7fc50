"""Wrong: the last element of a partly filled block is left out."""
# ruff: noqa: N803 - compile-time arguments are upper case in Triton

import triton
import triton.language as tl


@triton.jit
def tanh_form(x, y, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + offsets, mask=offsets < n, other=0.0)
    u = 0.7978845608028654 * (v + 0.044715 * v * v * v)
    tl.store(y + offsets, v / (1.0 + tl.exp(-2.0 * u)), mask=offsets < n - (n % BLOCK > 0))


def gelu(x, y):
    n = x.numel()
    tanh_form[(triton.cdiv(n, 1024),)](x, y, n, BLOCK=1024)
