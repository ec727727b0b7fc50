"""Layer normalization as `torch.compile` makes it when it may search: compare with compiled.py, which takes defaults.

The mode "max-autotune-no-cudagraphs" measures several block sizes for the kernel that it makes, and takes the fastest.
The first call with a shape therefore takes seconds longer than compiled.py, and later calls use what was fastest; so
shapes that are too small to be timed do not search. The mode "max-autotune" would also capture the call into a CUDA
graph. The judge does that itself, for every kernel, and one capture cannot contain another.
"""

import torch

torch._dynamo.config.recompile_limit = 64  # the shapes are static, and every test has its own
SEARCHED = 1 << 20  # elements from which on a search is worth its time


def computed(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, y: torch.Tensor, eps: float) -> None:
    y.copy_(torch.nn.functional.layer_norm(x, weight.shape, weight, bias, eps))


plain = torch.compile(computed, dynamic=False)
searched = torch.compile(computed, dynamic=False, mode="max-autotune-no-cudagraphs")


def layernorm(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, y: torch.Tensor, eps: float) -> None:
    """y = each row of x normalized, times weight, plus bias: [rows, cols], [cols], [cols], [rows, cols]."""
    compiled = searched if x.numel() >= SEARCHED else plain
    compiled(x, weight, bias, y, eps)
