"""The k largest as `torch.compile` makes them: the baseline of those who write no kernel at all.

A 64-bit key has an element's value above its place, counted from the end, so that no two are equal and `topk` will do.
A stable sort of narrow rows would be a Triton kernel that takes minutes to compile.
"""

import torch

torch._dynamo.config.recompile_limit = 64  # the shapes are static, and every test has its own


@torch.compile(dynamic=False)
def topk_ties(x: torch.Tensor, values: torch.Tensor, indices: torch.Tensor, k: int) -> None:
    """The k largest of x [rows, cols] into values [rows, k], and where they are into indices [rows, k]."""
    bits = (x.float() + 0.0).view(torch.int32)  # 0 for -0 as well
    ordered = bits ^ ((bits >> 31) & 0x7FFFFFFF)  # as integers they are in the order of the floats
    last = x.shape[1] - 1
    key = (ordered.to(torch.int64) << 32) | (last - torch.arange(x.shape[1], device=x.device))
    order = last - (torch.topk(key, k, dim=1).values & 0xFFFFFFFF)
    values.copy_(x.gather(1, order))
    indices.copy_(order)
