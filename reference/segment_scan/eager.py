"""Running sums within segments in PyTorch: one of all elements, less what it was where the segment begins.

That cancels, so it is done in float64. A scan of each segment by itself would be thousands of calls.
"""

import torch


def segment_scan(x: torch.Tensor, offsets: torch.Tensor, y: torch.Tensor) -> None:
    """[n], [segments + 1] int32 to [n]: for each element the sum of its segment up to it."""
    sums = torch.cat([x.new_zeros(1, dtype=torch.float64), x.cumsum(0, dtype=torch.float64)])
    element = torch.arange(len(x), dtype=torch.int32, device=x.device)
    segment = torch.searchsorted(offsets, element, right=True) - 1
    y.copy_(sums[1:] - sums[offsets[segment].to(torch.int64)])
