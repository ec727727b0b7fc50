"""The definition of the rotary embedding."""

import torch


def reference(q: torch.Tensor, positions: torch.Tensor, table: torch.Tensor) -> torch.Tensor:
    """q [tokens, heads, dim] turned by the rows of table [1024, dim] at positions [tokens]; computed in float32."""
    wide = torch.promote_types(q.dtype, torch.float32)
    cosines, sines = table[positions.long()].to(wide)[:, None].chunk(2, dim=-1)
    left, right = q.to(wide).chunk(2, dim=-1)
    turned = torch.cat([left * cosines - right * sines, right * cosines + left * sines], dim=-1)
    return turned.to(q.dtype)
