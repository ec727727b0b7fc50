"""A write outside of a submission's outputs, and the message about it.

`Batch` finds it in the red zones around them. Trusted: it looks at bytes alone.

Outputs and red zones hold poison before a call: 16 random bytes, repeated, in each of which two bits are set. In every
float format but float8_e8m0fnu and float4 these are the two highest bits of the exponent, so that each element is NaN,
infinite, or at least 16 in magnitude (2⁶⁵ in bfloat16 and float32). Of numbers whose bits are all random, half are
between -2 and 2: where the expected value is small, one in a hundred would pass for a right result that was not
written.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from harness.judge.correctness.layout import RedZone

_POISON = 0b0110_0000
_MASK = "in Triton, does a `tl.store` lack its `mask=`?"


@dataclass(frozen=True)
class OutOfBoundsWrite:
    """Bytes that the submission was not allowed to write."""

    set: int
    text: str
    hint: str = ""


def written_to(zone: RedZone, number: int, bad: torch.Tensor) -> OutOfBoundsWrite:
    """The write to a red zone in set `number`, of which `bad` [zone.nbytes] bool marks the bytes that changed."""
    return OutOfBoundsWrite(number, _described(zone, bad), _MASK if zone.element_bytes else "")


def _described(zone: RedZone, bad: torch.Tensor) -> str:
    """What was written to a red zone, of which `bad` marks the bytes that changed.

    Beyond an output it is counted in elements: a byte that is written may be what it was.
    """
    if not zone.element_bytes:
        return f"wrote {_counted(int(bad.sum()), 'byte')} outside its outputs, the first {zone.place}"
    elements = bad.view(-1, zone.element_bytes).any(1).nonzero().view(-1)
    count, skipped = len(elements), int(elements[0]) * zone.element_bytes
    nearest = f"{skipped:,} bytes behind it" if skipped else "right behind it"
    return (
        f"wrote {zone.place}: {_counted(count, 'element')} ({_counted(count * zone.element_bytes, 'byte')}), "
        f"{'the first ' if count > 1 else ''}{nearest}"
    )


def _counted(number: int, one: str) -> str:
    return f"{number:,} {one}{'' if number == 1 else 's'}"


def poison(noise: bytes) -> torch.Tensor:
    """The pattern to repeat, [16] uint8 on the CPU, from 16 random bytes."""
    assert len(noise) == 16
    return torch.tensor([byte | _POISON for byte in noise], dtype=torch.uint8)
