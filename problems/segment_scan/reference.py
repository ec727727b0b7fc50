"""The definition of running sums within segments, and the segments themselves."""

import torch


def generate(generator, n, segments, share=1.0):
    """Where each segment begins, and the end: all segments begin in the first `share` of the elements."""
    begins = torch.randint(0, int(share * n) + 1, (segments - 1,), generator=generator, device=generator.device)
    first, last = begins.new_tensor([0]), begins.new_tensor([n])
    return {"offsets": torch.cat([first, begins.sort().values, last]).to(torch.int32)}


def reference(x: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
    """[n], [segments + 1] to [n]: for each element the sum of its segment up to it."""
    lengths = (offsets[1:] - offsets[:-1]).tolist()
    return torch.cat([segment.cumsum(0) for segment in x.split(lengths)])
