"""The square in Triton with a breakpoint in the kernel, for Triton's interpreter."""

import torch
import triton
import triton.language as tl


@triton.jit
def square_kernel(x, y, n, BLOCK: tl.constexpr):  # noqa: N803 - compile-time arguments are upper case in Triton
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    values = tl.load(x + i, mask=i < n)
    breakpoint()
    tl.store(y + i, values * values, mask=i < n)


def square(x: torch.Tensor, y: torch.Tensor) -> None:
    square_kernel[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), BLOCK=1024)
