"""Where a call's memory lies, in the process that records it and in every process that makes it again.

Pointers are baked into a captured call, some of them inside structures that nobody can look into, as in the tensor
maps of Hopper's copy engine. So the addresses are the same everywhere, and fixed: no recording says where they are.
"""

from __future__ import annotations

from typing import NamedTuple


class AddressRange(NamedTuple):
    """Device addresses [start, start + nbytes)."""

    start: int
    nbytes: int

    def holds(self, address: int, nbytes: int) -> bool:
        return self.start <= address and address + nbytes <= self.start + self.nbytes


_EACH = 1 << 40  # more than any device has

INPUTS = AddressRange(0x5000_0000_0000, _EACH)  # read-only
OUTPUTS = AddressRange(0x5100_0000_0000, _EACH)
SCRATCH = AddressRange(0x5200_0000_0000, _EACH)  # what the submission allocated itself
