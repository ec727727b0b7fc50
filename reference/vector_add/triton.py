"""Vector addition in Triton: each program adds one block of elements."""
# ruff: noqa: N803 - compile-time arguments are upper case in Triton

import torch
import triton
import triton.language as tl

BLOCK = 1024


@triton.jit
def add_kernel(x, y, out, n, BLOCK: tl.constexpr):
    # In 64 bits: n may exceed 2³¹ elements.
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    # The last block is rarely full.
    inside = offsets < n
    tl.store(out + offsets, tl.load(x + offsets, mask=inside) + tl.load(y + offsets, mask=inside), mask=inside)


def vector_add(x: torch.Tensor, y: torch.Tensor, out: torch.Tensor) -> None:
    """out = x + y: [n] float32 each."""
    n = x.numel()
    add_kernel[(triton.cdiv(n, BLOCK),)](x, y, out, n, BLOCK=BLOCK)
