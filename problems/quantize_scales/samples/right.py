"""Right: in PyTorch, in float32."""

import torch


def quantize_scales(x, q, scale, by):
    wide = x.float()
    peak = wide.abs().amax(dim=((0, 1), 1, 0)[by], keepdim=True)
    scale.copy_(peak / 127)
    q.copy_((127 * wide / torch.where(peak > 0, peak, 1.0)).round())
