"""The square in Triton with ten configurations of block and warps, of which `@triton.autotune` takes the fastest."""
# ruff: noqa: N803 - compile-time arguments are upper case in Triton

import torch
import triton
import triton.language as tl

CONFIGS = [
    triton.Config({"BLOCK": block}, num_warps=warps)
    for block, warps in (
        (128, 1), (128, 4), (256, 4), (512, 4), (1024, 2), (1024, 4), (1024, 8), (2048, 4), (2048, 8), (4096, 8)
    )
]  # fmt: skip


@triton.autotune(CONFIGS, key=["n"])
@triton.jit
def block_kernel(x, y, n, BLOCK: tl.constexpr):
    element = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + element, mask=element < n)
    tl.store(y + element, value * value, mask=element < n)


def square(x: torch.Tensor, y: torch.Tensor) -> None:
    """y = x · x: [n] float32 each."""
    block_kernel[lambda chosen: (triton.cdiv(x.numel(), chosen["BLOCK"]),)](x, y, x.numel())
