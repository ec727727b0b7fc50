"""Twice the input, half of it on a second stream that is forked from the current one and joined to it."""

from functools import cache

import torch


@cache
def side_stream() -> torch.cuda.Stream:
    # Streams come in turn from a pool per priority; one from the other pool cannot be anybody's current stream.
    return torch.cuda.Stream(priority=-1)


def forkjoin(x: torch.Tensor, y: torch.Tensor) -> None:
    """y = 2 x: [n] float32 each."""
    half = x.numel() // 2
    here, side = torch.cuda.current_stream(), side_stream()
    side.wait_stream(here)
    with torch.cuda.stream(side):
        torch.mul(x[half:], 2.0, out=y[half:])
    torch.mul(x[:half], 2.0, out=y[:half])
    here.wait_stream(side)
