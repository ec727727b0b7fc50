"""Wrong: the quotient is computed in float16, where 127 · x has 11 bits and may be infinite."""

import torch


def quantize_dynamic(x, w, w_scale, y):
    peak = x.abs().amax(dim=1, keepdim=True)
    steps = (127 * x / torch.where(peak > 0, peak, 1.0)).round()
    y.copy_((steps.double() @ w.double().T) * (peak.double() / 127) * w_scale)
