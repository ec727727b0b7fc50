"""The memory of a number of calls: how it is made, how a runner gets it, where each tensor is in it. Trusted.

Outputs and the red zones around them hold poison before a call: 16 random bytes, repeated, in each of which two bits
are set. In every float format but float8_e8m0fnu and float4 these are the two highest bits of the exponent, so that
each element is NaN, infinite, or at least 16 in magnitude (2⁶⁵ in bfloat16 and float32). Of numbers whose bits are all
random, half are between -2 and 2: where the expected value is small, one in a hundred would pass for a right result
that was not written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch

from harness.arena import Arena, make_arena
from harness.arena.shapes import viewed
from harness.judge.correctness.layout import Layout, Place, RedZone, Slot
from harness.judge.session import Session
from harness.judge.session.time_limit import TimeLimit
from harness.verdict import DeviceKind
from harness.wire import commands, replies

_POISON = 0b0110_0000
_MASK = "in Triton, does a `tl.store` lack its `mask=`?"


def arenas(layout: Layout, device: DeviceKind, sets: int, *, sealed: bool = True) -> dict[Place, Arena]:
    """Memory for the inputs and outputs of that many calls, in the order in which a runner gets it.

    Raises:
        DeviceError: out of memory, or the device cannot read the host's.
    """
    made: dict[Place, Arena] = {}
    try:
        for place, stride in layout.strides.items():
            read_only = sealed and place != "outputs"
            made[place] = make_arena(device, sets * stride, read_only=read_only, in_host=place == "host")
    except BaseException:  # torch raises its own error when memory is short
        for arena in made.values():
            arena.close()
        raise
    return made


def descriptors(of: Mapping[Place, Arena]) -> tuple[int, ...]:
    """The file descriptors of arenas, in the order in which a runner gets them."""
    return tuple(arena.descriptor() for arena in of.values())


def bind(
    session: Session,
    bindings: Sequence[commands.Declare | commands.Bind],
    arenas: Sequence[int],
    *,
    limit: TimeLimit,
    doing: str,
) -> None:
    """Let a runner declare the tensors of its calls, and map the arenas with these descriptors.

    Raises:
        SubmissionFault, SandboxError: as for `Session.ask`.
    """
    for command in bindings:
        attached = arenas if isinstance(command, commands.Bind) else ()
        session.ask(command, replies.Done, limit=limit, doing=doing, descriptors=attached)


def placed(slot: Slot, region: torch.Tensor) -> torch.Tensor:
    """The tensor of a slot in the memory of one call [uint8], without a copy."""
    raw = region[slot.offset : slot.offset + slot.nbytes].view(dtype_of(slot))
    return viewed(raw, slot.tensor.shape, slot.tensor.strides or ())


def dtype_of(slot: Slot) -> torch.dtype:
    """The dtype of its elements."""
    dtype = getattr(torch, slot.tensor.dtype)
    assert isinstance(dtype, torch.dtype)
    return dtype


def poison(noise: bytes) -> torch.Tensor:
    """The pattern to repeat, [16] uint8 on the CPU, from 16 random bytes."""
    assert len(noise) == 16
    return torch.tensor([byte | _POISON for byte in noise], dtype=torch.uint8)


@dataclass(frozen=True)
class OutOfBoundsWrite:
    """Bytes that the submission was not allowed to write."""

    set: int
    text: str
    hint: str = ""


def written_to(zone: RedZone, number: int, bad: torch.Tensor) -> OutOfBoundsWrite:
    """The write to a red zone in set `number`, of which `bad` [zone.nbytes] bool marks the bytes that changed.

    Beyond an output it is counted in elements: a byte that is written may be what it was.
    """
    if not zone.element_bytes:
        text = f"wrote {_counted(int(bad.sum()), 'byte')} outside its outputs, the first {zone.place}"
        return OutOfBoundsWrite(number, text)
    elements = bad.view(-1, zone.element_bytes).any(1).nonzero().view(-1)
    count, skipped = len(elements), int(elements[0]) * zone.element_bytes
    nearest = f"{skipped:,} bytes behind it" if skipped else "right behind it"
    text = (
        f"wrote {zone.place}: {_counted(count, 'element')} ({_counted(count * zone.element_bytes, 'byte')}), "
        f"{'the first ' if count > 1 else ''}{nearest}"
    )
    return OutOfBoundsWrite(number, text, _MASK)


def _counted(number: int, one: str) -> str:
    return f"{number:,} {one}{'' if number == 1 else 's'}"
