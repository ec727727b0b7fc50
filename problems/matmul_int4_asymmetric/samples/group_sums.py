"""Wrong: the sum of each group is kept in 16 bits until it is scaled; float16 ends at 65504."""

import torch


def matmul_int4_asymmetric(x, packed, scale, zero, y):
    m, (n, groups) = len(x), scale.shape
    halves = torch.stack((packed & 0xF, packed >> 4), dim=-1).view(n, groups, -1)
    steps = halves.float() - zero[:, :, None]
    sums = torch.einsum("mgs,ngs->mng", x.float().view(m, groups, -1), steps).half()
    y.copy_((sums.float() * scale.float()).sum(dim=2))
