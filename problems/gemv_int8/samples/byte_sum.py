"""Wrong: x is made int8 too, for instructions that multiply four bytes at once: it has 11 bits, and 8 are left."""

import torch


def gemv_int8(w, scale, x, y):
    step = x.float().abs().amax() / 127
    quantized = torch.round(x.float() / step)
    y.copy_((w.float() @ quantized) * step * scale)
