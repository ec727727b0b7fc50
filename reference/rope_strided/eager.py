"""The rotary embedding in PyTorch."""

import torch


def rope_strided(q: torch.Tensor, positions: torch.Tensor, table: torch.Tensor) -> None:
    """q [tokens, heads, dim] in place, turned by the rows of table [1024, dim] at positions [tokens]."""
    cosines, sines = table[positions][:, None].float().chunk(2, dim=-1)
    left, right = (half.float() for half in q.chunk(2, dim=-1))
    q.copy_(torch.cat([left * cosines - right * sines, right * cosines + left * sines], dim=-1))
