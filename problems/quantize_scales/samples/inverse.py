"""Right: multiplies by the inverse of the scale, which rounds ties the other way now and then."""

import torch


def quantize_scales(x, q, scale, by):
    peak = x.float().abs().amax(dim=((0, 1), 1, 0)[by], keepdim=True)
    scale.copy_(peak / 127)
    inverse = torch.where(scale > 0, 127 / peak, 0.0)
    q.copy_((x.float() * inverse).round())
