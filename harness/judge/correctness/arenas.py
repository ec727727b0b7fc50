"""The memory of a number of calls: how it is made, how a runner gets it, and where each tensor is in it. Trusted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch

from harness.arena import Arena, make_arena
from harness.arena.shapes import viewed
from harness.judge.correctness.layout import Layout, Place, Slot
from harness.judge.session import Session
from harness.judge.session.time_limit import TimeLimit
from harness.verdict import DeviceKind
from harness.wire import commands, replies


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
