"""Layer normalisation without weights, in eager mode: three kernels per call, with gaps between them."""

import torch


def layernorm(x: torch.Tensor, y: torch.Tensor) -> None:
    """y = each row of x, centred and divided by its standard deviation: [rows, cols] float32 each."""
    deviation, mean = torch.std_mean(x, dim=-1, correction=0, keepdim=True)
    torch.sub(x, mean, out=y)
    torch.div(y, deviation, out=y)
