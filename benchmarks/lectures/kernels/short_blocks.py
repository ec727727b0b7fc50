"""The lecture's kernel with one program for all, whose block is shorter than its row: the rest is not computed."""

import torch
import triton
import triton.language as tl


@triton.jit
def square_kernel(x, y, n, BLOCK: tl.constexpr):  # noqa: N803 - compile-time arguments are upper case in Triton
    i = tl.arange(0, BLOCK)
    values = tl.load(x + i, mask=i < n)
    tl.store(y + i, values * values, mask=i < n)


def square(x: torch.Tensor, y: torch.Tensor) -> None:
    square_kernel[(1,)](x, y, x.numel(), BLOCK=128)
