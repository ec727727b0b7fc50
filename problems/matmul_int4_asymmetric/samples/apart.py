"""Right: the zero points are taken out of the sums, and what they add up to is subtracted in float32."""

import torch


def matmul_int4_asymmetric(x, packed, scale, zero, y):
    (m, k), (n, groups) = x.shape, scale.shape
    halves = torch.stack((packed & 0xF, packed >> 4), dim=-1).view(n, groups, -1).float()
    factor = scale.float()
    total = x.float() @ (halves * factor[:, :, None]).view(n, k).T
    sums = x.float().view(m, groups, -1).sum(dim=2)
    y.copy_(total - sums @ (factor * zero).T)
