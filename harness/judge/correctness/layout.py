"""Where every tensor of every call is in the two arenas, with red zones around the outputs. Pure, trusted.

An arena holds `sets` regions of one stride. In the output arena each tensor is between red zones, so a store that runs
past an output hits bytes whose content the judge knows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from harness import wire
from harness.problem import ResolvedCase, ResolvedTensor
from harness.problem.dtypes import DTYPES

ALIGNMENT = 512  # cudaMalloc guarantees 256; kernels may rely on vector loads either way
RED_ZONE_BYTES = 4096


@dataclass(frozen=True)
class Slot:
    """One tensor's place within a set's region: bytes [offset, offset + nbytes)."""

    tensor: ResolvedTensor
    offset: int
    nbytes: int

    @property
    def writable(self) -> bool:
        return self.tensor.role != "input"


def _aligned(offset: int) -> int:
    return -(-offset // ALIGNMENT) * ALIGNMENT


class Layout:
    """The regions of one set in the input and output arenas; set k begins at k × stride."""

    def __init__(self, case: ResolvedCase, *, keeps_copy: bool = False) -> None:
        """`keeps_copy`: whether the judge keeps a copy of what a call gets, since `generate` made some of it."""
        slots: list[Slot] = []
        inputs, outputs = 0, RED_ZONE_BYTES
        for tensor in case.tensors:
            nbytes = math.prod(tensor.shape) * DTYPES[tensor.dtype].size_bytes
            if tensor.role == "input":
                slots.append(Slot(tensor, inputs, nbytes))
                inputs = _aligned(inputs + nbytes)
            else:
                slots.append(Slot(tensor, outputs, nbytes))
                outputs = _aligned(outputs + nbytes) + RED_ZONE_BYTES
        self.slots = tuple(slots)
        self.outputs = tuple(slot for slot in slots if slot.writable)
        self.input_stride = max(inputs, ALIGNMENT)
        self.output_stride = outputs
        self.keeps_copy = keeps_copy

    @property
    def bytes_per_set(self) -> int:
        """The device memory that one set takes in the judge: both arenas, the snapshot, and a copy of what it gets."""
        inouts = any(slot.tensor.role == "inout" for slot in self.outputs)
        copy = self.input_stride + (self.output_stride if inouts else 0) if self.keeps_copy else 0
        return self.input_stride + 2 * self.output_stride + copy

    def red_zones(self) -> list[tuple[int, int, str]]:
        """The byte ranges of a set's output region that belong to no output, each with what it borders."""
        zones, end, name = [], 0, f"before `{self.outputs[0].tensor.name}`"
        for slot in self.outputs:
            zones.append((end, slot.offset, name))
            end, name = slot.offset + slot.nbytes, f"past the end of `{slot.tensor.name}`"
        zones.append((end, self.output_stride, name))
        return zones

    def commands(
        self, case: ResolvedCase, parameters: Sequence[str], sets: int, *, seed: int, inputs_writable: bool = False
    ) -> tuple[wire.Declare | wire.Bind, ...]:
        """The commands that tell the runner where everything is: tensors, as many per frame as fit, then the rest.

        `seed` is that of the weights, where the submission is a module.
        """
        arguments = tuple(
            wire.Argument(
                name=s.tensor.name,
                dtype=s.tensor.dtype,
                shape=s.tensor.shape,
                writable=s.writable,
                offset=s.offset,
                group=s.tensor.list_name or "",
            )
            for s in self.slots
        )
        values = [case.params[name] for name in parameters]
        bind = wire.Bind(
            symbol=case.symbol,
            scalars=tuple(wire.Scalar(dtype=s.dtype, value=s.value) for s in case.scalars),
            sizes=tuple(v for v in values if isinstance(v, int)),
            sets=sets,
            input_bytes=sets * self.input_stride,
            input_stride=self.input_stride,
            output_bytes=sets * self.output_stride,
            output_stride=self.output_stride,
            inputs_writable=inputs_writable,
            forms=case.forms,
            seed=seed,
        )
        starts = range(0, len(arguments), wire.MAX_DECLARED)
        return (*(wire.Declare(arguments=arguments[i : i + wire.MAX_DECLARED]) for i in starts), bind)
