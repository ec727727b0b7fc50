"""Wrong: turns neighbours, as GPT-J does, and not halves."""

import torch


def rope_strided(q, positions, table):
    cosines, sines = table[positions.long()][:, None].float().chunk(2, dim=-1)
    left, right = q[..., 0::2].float(), q[..., 1::2].float()
    turned = torch.stack([left * cosines - right * sines, right * cosines + left * sines], dim=-1)
    q.copy_(turned.flatten(-2))
