"""Wrong: the second half is turned with what the first has become."""


def rope_strided(q, positions, table):
    cosines, sines = table[positions.long()][:, None].float().chunk(2, dim=-1)
    left, right = q.chunk(2, dim=-1)
    left.copy_(left.float() * cosines - right.float() * sines)
    right.copy_(right.float() * cosines + left.float() * sines)
