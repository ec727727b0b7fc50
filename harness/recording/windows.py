"""The addresses of a call's memory, which are the same in the process that records it and in those that replay it.

A captured call contains pointers, some of them inside opaque structures, such as the tensor maps of Hopper's TMA. So
the addresses must be fixed.
"""

from __future__ import annotations

from typing import NamedTuple


class AddressRange(NamedTuple):
    """Device addresses [start, start + nbytes)."""

    start: int
    nbytes: int

    def holds(self, address: int, nbytes: int) -> bool:
        return self.start <= address and address + nbytes <= self.start + self.nbytes


_WINDOW_BYTES = 1 << 40  # more than any device has

INPUTS = AddressRange(0x5000_0000_0000, _WINDOW_BYTES)  # read-only
HOST_INPUTS = AddressRange(0x5300_0000_0000, _WINDOW_BYTES)  # read-only, in the host's memory
OUTPUTS = AddressRange(0x5100_0000_0000, _WINDOW_BYTES)
SCRATCH = AddressRange(0x5200_0000_0000, _WINDOW_BYTES)  # memory that the submission allocates
