"""The sum of two vectors in Triton, which every evaluator times; the slower kernel is this with a SHARE of 0.01.

A share of the programs more than needed repeat the first blocks, which are in L2 no longer.
"""
# ruff: noqa: N803 - compile-time arguments are upper case in Triton

import torch
import triton
import triton.language as tl

BLOCK = 1024
SHARE = 0.0


@triton.jit
def add_kernel(a, b, out, n, blocks, BLOCK: tl.constexpr):
    offsets = (tl.program_id(0) % blocks) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    tl.store(out + offsets, tl.load(a + offsets, mask=inside) + tl.load(b + offsets, mask=inside), mask=inside)


def add(a: torch.Tensor, b: torch.Tensor, out: torch.Tensor | None = None) -> torch.Tensor:
    """a + b, written to `out` if there is one: [n] float32 each."""
    if out is None:
        out = torch.empty_like(a)
    n = a.numel()
    blocks = triton.cdiv(n, BLOCK)
    add_kernel[(blocks + int(blocks * SHARE),)](a, b, out, n, blocks, BLOCK=BLOCK)
    return out
