"""The memory of a batch of calls: allocates it, passes it to a runner, and finds each tensor in it. Trusted.

Before a call, outputs and the red zones around them contain poison: 16 random bytes, repeated, with two bits set in
each byte. In every float format but float8_e8m0fnu and float4 these are the two highest bits of the exponent, so each
element is NaN, infinite, or at least 16 in magnitude (2⁶⁵ in bfloat16 and float32). If all bits were random, half of
the numbers would be between -2 and 2, and where the expected value is small, one unwritten element in a hundred would
pass as right.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch

from harness.arena import Arena, make_arena
from harness.arena.shapes import viewed
from harness.judge.correctness.layout import ArenaName, Layout, RedZone, Slot
from harness.judge.session import Session
from harness.judge.session.time_limit import TimeLimit
from harness.verdict import DeviceKind
from harness.wire import commands, replies

_POISON = 0b0110_0000
_MASK = "in Triton, does a `tl.store` lack its `mask=`?"


def arenas(layout: Layout, device: DeviceKind, sets: int, *, sealed: bool = True) -> dict[ArenaName, Arena]:
    """Allocate memory for the inputs and outputs of `sets` calls, in the order in which a runner receives it.

    Raises:
        DeviceError: out of memory, or the device cannot read the host's memory.
    """
    made: dict[ArenaName, Arena] = {}
    try:
        for place, stride in layout.strides.items():
            read_only = sealed and place != "outputs"
            made[place] = make_arena(device, sets * stride, read_only=read_only, in_host=place == "host")
    except BaseException:  # torch raises its own error when memory is short
        for arena in made.values():
            arena.close()
        raise
    return made


def descriptors(made: Mapping[ArenaName, Arena]) -> tuple[int, ...]:
    """The file descriptors of arenas, in the order in which a runner receives them."""
    return tuple(arena.descriptor() for arena in made.values())


def bind(
    session: Session,
    bindings: Sequence[commands.Declare | commands.Bind],
    arenas: Sequence[int],
    *,
    limit: TimeLimit,
    doing: str,
) -> None:
    """Tell a runner the tensors of its calls, and let it map the arenas with these descriptors.

    Raises:
        SubmissionFault, SandboxError: as for `Session.ask`.
    """
    for command in bindings:
        attached = arenas if isinstance(command, commands.Bind) else ()
        session.ask(command, replies.Done, limit=limit, doing=doing, descriptors=attached)


def placed(slot: Slot, region: torch.Tensor) -> torch.Tensor:
    """A view of a slot's tensor in the memory of one call [uint8]."""
    raw = region[slot.offset : slot.offset + slot.nbytes].view(dtype_of(slot))
    return viewed(raw, slot.tensor.shape, slot.tensor.strides or ())


def dtype_of(slot: Slot) -> torch.dtype:
    """The dtype of a slot's elements."""
    dtype = getattr(torch, slot.tensor.dtype)
    assert isinstance(dtype, torch.dtype)
    return dtype


def poison(noise: bytes) -> torch.Tensor:
    """Make the pattern that poison repeats, [16] uint8 on the CPU, from 16 random bytes."""
    assert len(noise) == 16
    return torch.tensor([byte | _POISON for byte in noise], dtype=torch.uint8)


@dataclass(frozen=True)
class OutOfBoundsWrite:
    """A write to bytes that the submission may not write."""

    set: int
    text: str
    hint: str = ""


def written_to(zone: RedZone, number: int, bad: torch.Tensor) -> OutOfBoundsWrite:
    """Describe the write to a red zone in set `number`; `bad` [zone.nbytes] bool marks the bytes that changed.

    Beyond an output, elements are counted instead of bytes, since some bytes of a written element may be unchanged.
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


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
