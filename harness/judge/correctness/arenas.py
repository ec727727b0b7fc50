"""The memory of a number of calls: how it is made and handed over, and where each tensor lies in it. Trusted."""

from __future__ import annotations

from collections.abc import Mapping

import torch

from harness.arena import Arena, make_arena
from harness.arena.shapes import viewed
from harness.judge.correctness.layout import Layout, Place, Slot
from harness.verdict import DeviceKind


def arenas(layout: Layout, device: DeviceKind, sets: int, *, sealed: bool = True) -> dict[Place, Arena]:
    """Memory for the inputs and outputs of that many calls, to be handed over in this order.

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
    """Of arenas, to be handed over in their order."""
    return tuple(arena.descriptor() for arena in of.values())


def placed(slot: Slot, region: torch.Tensor) -> torch.Tensor:
    """The tensor of a slot in the memory of one call [uint8], without a copy."""
    raw = region[slot.offset : slot.offset + slot.nbytes].view(dtype_of(slot))
    return viewed(raw, slot.tensor.shape, slot.tensor.strides or ())


def dtype_of(slot: Slot) -> torch.dtype:
    """The dtype of its elements."""
    dtype = getattr(torch, slot.tensor.dtype)
    assert isinstance(dtype, torch.dtype)
    return dtype
