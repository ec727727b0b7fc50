"""GELU in its tanh form in PyTorch, one elementwise operation after the other: what it costs not to fuse.

Each line is a kernel of its own, which reads its operands from memory and writes its result there: nine launches and
21 passes over memory, where one launch and two passes would do. eager.py takes one launch, because PyTorch has a kernel
for this function. compiled.py takes one as well; torch.compile would also fuse the lines below. Compare the three in a
profile, or in the list of kernels that `kernelmark show` prints.
"""

import torch


def gelu(x: torch.Tensor, y: torch.Tensor) -> None:
    """y = gelu(x): [n] float32 each."""
    square = x * x
    cube = square * x
    small = 0.044715 * cube
    inner = x + small
    u = 0.7978845608028654 * inner
    bend = torch.tanh(u)
    shifted = 1.0 + bend
    half = 0.5 * x
    torch.mul(half, shifted, out=y)
