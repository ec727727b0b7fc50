"""The rotary embedding as `torch.compile` makes it: the baseline of those who write no kernel at all."""

import torch

torch._dynamo.config.recompile_limit = 64  # the shapes are static, and every test has its own


@torch.compile(dynamic=False)
def rope_strided(q: torch.Tensor, positions: torch.Tensor, table: torch.Tensor) -> None:
    """q [tokens, heads, dim] in place, turned by the rows of table [1024, dim] at positions [tokens]."""
    cosines, sines = table[positions][:, None].float().chunk(2, dim=-1)
    left, right = (half.float() for half in q.chunk(2, dim=-1))
    q.copy_(torch.cat([left * cosines - right * sines, right * cosines + left * sines], dim=-1))
