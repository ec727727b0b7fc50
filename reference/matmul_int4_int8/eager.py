"""The product of int8 with int4 weights in PyTorch: the weights become int8 in memory first, which is what costs."""

import torch

PIECE = 16384  # so many products of at most 127 · 8 are exact in float32


def matmul_int4_int8(
    x: torch.Tensor, packed: torch.Tensor, x_scale: torch.Tensor, w_scale: torch.Tensor, y: torch.Tensor
) -> None:
    """[m, k] int8, [n, ceil(k / 2)] uint8, [m], [n] to [m, n] float16."""
    (m, k), n = x.shape, len(packed)
    # A shift to the right of a signed byte extends the sign. Where k is odd, the last half of a row is no weight.
    halves = torch.stack(((packed << 4).view(torch.int8) >> 4, packed.view(torch.int8) >> 4), dim=-1)
    weights = halves.view(n, -1)[:, :k]
    if x.is_cuda and m > 16 and k % 8 == n % 8 == 0:  # what PyTorch's kernel asks for
        total = torch._int_mm(x, weights.T)
    else:
        total = torch.zeros(m, n, dtype=torch.int32, device=x.device)
        for start in range(0, k, PIECE):
            piece = slice(start, start + PIECE)
            total += (x[:, piece].float() @ weights[:, piece].float().T).to(torch.int32)
    y.copy_(total.float() * x_scale[:, None] * w_scale)
