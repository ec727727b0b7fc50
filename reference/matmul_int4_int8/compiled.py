"""The product of int8 with int4 weights as `torch.compile` makes it: the baseline of those who write no kernel."""

import torch

torch._dynamo.config.recompile_limit = 64  # the shapes are static, and every test has its own


@torch.compile(dynamic=False)
def matmul_int4_int8(
    x: torch.Tensor, packed: torch.Tensor, x_scale: torch.Tensor, w_scale: torch.Tensor, y: torch.Tensor
) -> None:
    """[m, k] int8, [n, ceil(k / 2)] uint8, [m], [n] to [m, n] float16."""
    (m, k), n = x.shape, len(packed)
    halves = torch.stack((packed & 0xF, packed >> 4), dim=-1).view(n, -1)[:, :k]
    weights = (halves ^ 8).to(torch.int8) - 8
    # PyTorch's kernel takes more than 16 rows, and multiples of 8; zeros beyond change nothing.
    rows, deep, wide = max(32, m), -(-k // 8) * 8, -(-n // 8) * 8
    left = torch.nn.functional.pad(x, (0, deep - k, 0, rows - m))
    right = torch.nn.functional.pad(weights, (0, deep - k, 0, wide - n))
    total = torch._int_mm(left, right.T)[:m, :n]
    y.copy_(total.float() * x_scale[:, None] * w_scale)
