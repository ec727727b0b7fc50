"""The lecture's GELU: tanh by (exp(2 x) - 1) / (exp(2 x) + 1), which is inf / inf for large x."""

import torch
import triton
import triton.language as tl


@triton.jit
def gelu_kernel(x, y, n, BLOCK: tl.constexpr):  # noqa: N803 - compile-time arguments are upper case in Triton
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x + i, mask=i < n)
    exp = tl.exp(2 * 0.79788456 * (a + 0.044715 * a * a * a))
    tl.store(y + i, 0.5 * a * (1 + (exp - 1) / (exp + 1)), mask=i < n)


def gelu(x: torch.Tensor, y: torch.Tensor) -> None:
    gelu_kernel[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), BLOCK=1024)
