"""Wrong: a running sum of all elements in float32, less what it was where the segment begins, which cancels."""

import torch


def segment_scan(x, offsets, y):
    sums = torch.cat([x.new_zeros(1), x.cumsum(0)])
    element = torch.arange(len(x), dtype=torch.int32, device=x.device)
    segment = torch.searchsorted(offsets, element, right=True) - 1
    y.copy_(sums[1:] - sums[offsets[segment].long()])
