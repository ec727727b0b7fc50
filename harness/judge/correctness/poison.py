"""What outputs and red zones hold before a call. Trusted.

16 random bytes, repeated, in each of which two bits are set. In every float format but float8_e8m0fnu and float4 these
are the two highest bits of the exponent, so that each element is NaN, infinite, or at least 16 in magnitude (2⁶⁵ in
bfloat16 and float32). Of numbers whose bits are all random, half lie between -2 and 2: where the expected value is
small, one in a hundred would pass for a right result that nobody wrote.
"""

from __future__ import annotations

import torch

_SET = 0b0110_0000


def poison(noise: bytes) -> torch.Tensor:
    """The pattern to repeat, [16] uint8 on the CPU, from 16 random bytes."""
    assert len(noise) == 16
    return torch.tensor([byte | _SET for byte in noise], dtype=torch.uint8)
