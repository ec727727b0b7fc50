"""Wrong: the program's own block is forgotten, so that every program adds the first one."""
# ruff: noqa: N803 - compile-time arguments are upper case in Triton

import triton
import triton.language as tl


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    inside = offsets < n
    tl.store(out + offsets, tl.load(x + offsets, mask=inside) + tl.load(y + offsets, mask=inside), mask=inside)


def vector_add(x, y, out):
    n = x.numel()
    add[(triton.cdiv(n, 1024),)](x, y, out, n, BLOCK=1024)
