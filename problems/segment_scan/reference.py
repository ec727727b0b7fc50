"""The definition of running sums within segments, and the segments themselves."""

import torch


def generate(generator, n, segments, share=1.0):
    """Where each segment begins, and the end: all segments begin in the first `share` of the elements."""
    begins = torch.randint(0, int(share * n) + 1, (segments - 1,), generator=generator, device=generator.device)
    first, last = begins.new_tensor([0]), begins.new_tensor([n])
    return {"offsets": torch.cat([first, begins.sort().values, last]).to(torch.int32)}


def reference(x: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
    """[n], [segments + 1] to [n]: for each element the sum of its segment up to it.

    In each step the sums have twice as many elements, as far as their segments have them. A loop over a million
    segments would take a GPU half a minute.
    """
    element = torch.arange(len(x), dtype=torch.int32, device=x.device)
    before = element - offsets[torch.searchsorted(offsets, element, right=True) - 1]  # elements of its segment
    sums, step, most = x.clone(), 1, int(before.max())
    while step <= most:
        sums[step:] += torch.where(before[step:] >= step, sums[:-step], 0)
        step *= 2
    return sums
