"""The scaled product of int8 in PyTorch: one int8 product where its kernel takes the sizes, else in float32 pieces."""

import torch

PIECE = 1024  # 1024 products of at most 127² are exact in float32


def matmul_int8(
    a: torch.Tensor, b: torch.Tensor, a_scale: torch.Tensor, b_scale: torch.Tensor, c: torch.Tensor
) -> None:
    """[m, k] int8, [n, k] int8, [m], [n] to [m, n] bfloat16."""
    (m, k), n = a.shape, len(b)
    if a.is_cuda and m > 16 and k % 8 == n % 8 == 0:  # what PyTorch's kernel asks for
        total = torch._int_mm(a, b.T)
    else:
        total = torch.zeros(m, n, dtype=torch.int32, device=a.device)
        for start in range(0, k, PIECE):
            piece = slice(start, start + PIECE)
            total += (a[:, piece].float() @ b[:, piece].float().T).to(torch.int32)
    c.copy_(total.float() * a_scale[:, None] * b_scale[None, :])
