"""The scaled product of int8 as `torch.compile` makes it when it may search: compare with compiled.py.

The mode "max-autotune-no-cudagraphs" measures libraries and a number of Triton kernels, and takes the fastest.
The first call with a shape therefore takes seconds longer than compiled.py, and later calls use what was fastest; so
shapes that are too small to be timed do not search. The mode "max-autotune" would also capture the call into a CUDA
graph. The judge does that itself, for every kernel, and one capture cannot contain another.
"""

import torch

torch._dynamo.config.recompile_limit = 64  # the shapes are static, and every test has its own
SEARCHED = 1 << 24  # multiplications from which on a search is worth its time


def computed(a: torch.Tensor, b: torch.Tensor, a_scale: torch.Tensor, b_scale: torch.Tensor, c: torch.Tensor) -> None:
    (m, k), n = a.shape, len(b)
    # PyTorch's kernel takes more than 16 rows, and multiples of 8; zeros beyond change nothing.
    rows, deep, wide = max(32, m), -(-k // 8) * 8, -(-n // 8) * 8
    left = torch.nn.functional.pad(a, (0, deep - k, 0, rows - m))
    right = torch.nn.functional.pad(b, (0, deep - k, 0, wide - n))
    total = torch._int_mm(left, right.T)[:m, :n]
    c.copy_(total.float() * a_scale[:, None] * b_scale[None, :])


plain = torch.compile(computed, dynamic=False)
searched = torch.compile(computed, dynamic=False, mode="max-autotune-no-cudagraphs")


def matmul_int8(
    a: torch.Tensor, b: torch.Tensor, a_scale: torch.Tensor, b_scale: torch.Tensor, c: torch.Tensor
) -> None:
    """[m, k] int8, [n, k] int8, [m], [n] to [m, n] bfloat16."""
    compiled = searched if a.numel() * len(b) >= SEARCHED else plain
    compiled(a, b, a_scale, b_scale, c)
