"""Wrong: computes in bfloat16."""

import torch


def rope_strided(q, positions, table):
    cosines, sines = table.bfloat16()[positions.long()][:, None].chunk(2, dim=-1)
    left, right = q.bfloat16().chunk(2, dim=-1)
    q.copy_(torch.cat([left * cosines - right * sines, right * cosines + left * sines], dim=-1))
