"""Right: divides by the scale, as most libraries do; ties may then be a bit off, and round either way."""

import torch


def quantize_dynamic(x, w, w_scale, y):
    scale = x.float().abs().amax(dim=1, keepdim=True) / 127
    inverse = torch.where(scale > 0, 1 / scale, 0.0)
    steps = (x.float() * inverse).round()
    y.copy_((steps.double() @ w.double().T).float() * scale * w_scale)
