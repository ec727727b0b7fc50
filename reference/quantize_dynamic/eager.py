"""Dynamic quantization and the product in PyTorch: rows to int8, one int8 product, and the scales, each in memory."""

import torch

PIECE = 1024  # 1024 products of at most 127² are exact in float32


def quantize_dynamic(x: torch.Tensor, w: torch.Tensor, w_scale: torch.Tensor, y: torch.Tensor) -> None:
    """[m, k] float16, [n, k] int8, [n] to [m, n] float16."""
    (m, k), n = x.shape, len(w)
    wide = x.float()
    peak = wide.abs().amax(dim=1, keepdim=True)
    # A row of zeros has the peak 0: divided by 1 it stays 0.
    steps = (127 * wide / torch.where(peak > 0, peak, 1.0)).round().to(torch.int8)
    if x.is_cuda and m > 16 and k % 8 == n % 8 == 0:  # what PyTorch's kernel asks for
        total = torch._int_mm(steps, w.T)
    else:
        total = torch.zeros(m, n, dtype=torch.int32, device=x.device)
        for start in range(0, k, PIECE):
            piece = slice(start, start + PIECE)
            total += (steps[:, piece].float() @ w[:, piece].float().T).to(torch.int32)
    y.copy_(total.float() * (peak / 127) * w_scale)
