"""The scaled product of int8 as `torch.compile` makes it: the baseline of those who write no kernel at all."""

import torch

torch._dynamo.config.recompile_limit = 64  # the shapes are static, and every test has its own


@torch.compile(dynamic=False)
def matmul_int8(
    a: torch.Tensor, b: torch.Tensor, a_scale: torch.Tensor, b_scale: torch.Tensor, c: torch.Tensor
) -> None:
    """[m, k] int8, [n, k] int8, [m], [n] to [m, n] bfloat16."""
    (m, k), n = a.shape, len(b)
    # PyTorch's kernel takes more than 16 rows, and multiples of 8; zeros beyond change nothing.
    rows, deep, wide = max(32, m), -(-k // 8) * 8, -(-n // 8) * 8
    left = torch.nn.functional.pad(a, (0, deep - k, 0, rows - m))
    right = torch.nn.functional.pad(b, (0, deep - k, 0, wide - n))
    total = torch._int_mm(left, right.T)[:m, :n]
    c.copy_(total.float() * a_scale[:, None] * b_scale[None, :])
