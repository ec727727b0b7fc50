"""The places of all tensors of all calls in the arenas, with red zones around the outputs. Pure, trusted.

There is an arena for inputs, one for outputs, and one for inputs in the host's memory, if there are any. An arena has
`sets` regions of the same stride, one per call. In the output arena each tensor is between red zones, so a store past
the end of an output changes bytes whose content the judge knows. So does a store between the elements of an output with
strides.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from harness.problem import ResolvedCase, ResolvedTensor
from harness.problem.dtypes import DTYPES
from harness.wire import commands

ALIGNMENT = 512  # cudaMalloc guarantees 256
RED_ZONE_BYTES = 4096
LARGE_BYTES = 1 << 30  # if a call takes more than this, its tensors are never copied
ArenaName = Literal["inputs", "outputs", "host"]
"""One of the arenas of a call; `host` contains the inputs in the host's memory."""


@dataclass(frozen=True)
class Slot:
    """A tensor's place in the region of one call: bytes [offset, offset + nbytes)."""

    tensor: ResolvedTensor
    offset: int
    nbytes: int

    @property
    def writable(self) -> bool:
        return self.tensor.role != "input"

    @property
    def place(self) -> ArenaName:
        """The tensor's arena."""
        if self.writable:
            return "outputs"
        return "host" if self.tensor.memory == "host" else "inputs"

    def words(self, drawn: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
        """Map random numbers in [0, 1) to the places of elements in the region, in words of 8 bytes."""
        if self.tensor.strides is None:
            return self.offset // 8 + (drawn * -(-self.nbytes // 8)).astype(np.int64)
        size = DTYPES[self.tensor.dtype].size_bytes
        element, byte = np.divmod((drawn * self.tensor.elements * size).astype(np.int64), size)
        index = np.unravel_index(element, self.tensor.shape)
        at = sum(i * stride for i, stride in zip(index, self.tensor.strides, strict=True))
        return np.asarray((self.offset + at * size + byte) // 8, dtype=np.int64)


@dataclass(frozen=True)
class RedZone:
    """Bytes of a call's output region that belong to no output.

    `shape` and `strides` (in bytes) describe them, starting at `low`.
    """

    low: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    place: str
    element_bytes: int = 0
    """The element size of the output that ends where this zone begins; 0: there is none."""

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape)

    @property
    def high(self) -> int:
        """The end of the last byte."""
        assert self.nbytes
        return self.low + 1 + sum((n - 1) * stride for n, stride in zip(self.shape, self.strides, strict=True))


def _aligned(offset: int) -> int:
    return -(-offset // ALIGNMENT) * ALIGNMENT


class Layout:
    """The regions of a call in the arenas; call k begins at k × stride."""

    def __init__(self, case: ResolvedCase, *, keeps_copy: bool = False) -> None:
        """`keeps_copy`: whether the judge keeps a copy of the inputs, since `generate` made some of them."""
        slots: list[Slot] = []
        inputs, outputs = {"device": 0, "host": 0}, RED_ZONE_BYTES
        for tensor in case.tensors:
            nbytes = tensor.span * DTYPES[tensor.dtype].size_bytes
            if tensor.role == "input":
                at = inputs[tensor.memory]
                slots.append(Slot(tensor, at, nbytes))
                inputs[tensor.memory] = _aligned(at + max(nbytes, 1))  # an empty tensor has an address, too
            else:
                slots.append(Slot(tensor, outputs, nbytes))
                outputs = _aligned(outputs + nbytes) + RED_ZONE_BYTES
        self.slots = tuple(slots)
        self.outputs = tuple(slot for slot in slots if slot.writable)
        self.input_stride = max(inputs["device"], ALIGNMENT)
        self.output_stride = outputs
        self.host_stride = inputs["host"]  # 0: no input is in the host's memory, and there is no arena for it
        self.keeps_copy = keeps_copy

    @property
    def strides(self) -> dict[ArenaName, int]:
        """The bytes of one call in each arena, in the order in which a runner receives the arenas."""
        strides: dict[ArenaName, int] = {"inputs": self.input_stride, "outputs": self.output_stride}
        return strides | {"host": self.host_stride} if self.host_stride else strides

    @property
    def read_stride(self) -> int:
        """The bytes of one call in the arenas of inputs."""
        return self.input_stride + self.host_stride

    @property
    def bytes_per_set(self) -> int:
        """The memory that one call takes in the judge: all arenas, the snapshot, and the copy of the inputs, if any."""
        inouts = any(slot.tensor.role == "inout" for slot in self.outputs)
        copy = self.read_stride + (self.output_stride if inouts else 0) if self.keeps_copy else 0
        return self.read_stride + 2 * self.output_stride + copy

    @property
    def is_large(self) -> bool:
        """Whether a call takes so much memory that its tensors must not be copied (docs/decisions/0006)."""
        return self.bytes_per_set > LARGE_BYTES

    def red_zones(self) -> list[RedZone]:
        """All bytes of a call's output region that belong to no output, each range with its neighbouring output."""
        zones, end, name, size = [], 0, f"before `{self.outputs[0].tensor.name}`", 0
        for slot in self.outputs:
            zones.append(RedZone(end, (slot.offset - end,), (1,), name, size))
            zones += _padding(slot)
            end, name = slot.offset + slot.nbytes, f"beyond the end of `{slot.tensor.name}`"
            size = DTYPES[slot.tensor.dtype].size_bytes
        zones.append(RedZone(end, (self.output_stride - end,), (1,), name, size))
        return zones

    def commands(
        self, case: ResolvedCase, parameters: Sequence[str], sets: int, *, seed: int, inputs_writable: bool = False
    ) -> tuple[commands.Declare | commands.Bind, ...]:
        """The commands that describe the calls to the runner: tensors, as many per frame as fit, then everything else.

        `seed`: the seed of the weights if the submission is a module.
        """
        arguments = tuple(
            commands.TensorArgument(
                name=s.tensor.name,
                dtype=s.tensor.dtype,
                shape=s.tensor.shape,
                writable=s.writable,
                offset=s.offset,
                group=s.tensor.list_name or "",
                strides=s.tensor.strides or (),
                host=s.place == "host",
                layouts=s.tensor.layouts,
            )
            for s in self.slots
        )
        values = [case.params[name] for name in parameters]
        bind = commands.Bind(
            symbol=case.symbol,
            scalars=tuple(commands.Scalar(dtype=s.dtype, value=s.value) for s in case.scalars),
            sizes=tuple(v for v in values if isinstance(v, int)),
            sets=sets,
            input_bytes=sets * self.input_stride,
            input_stride=self.input_stride,
            output_bytes=sets * self.output_stride,
            output_stride=self.output_stride,
            host_stride=self.host_stride,
            inputs_writable=inputs_writable,
            forms=case.forms,
            seed=seed,
            absent=tuple(case.absent.values()),
        )
        starts = range(0, len(arguments), commands.MAX_DECLARED)
        return (*(commands.Declare(arguments=arguments[i : i + commands.MAX_DECLARED]) for i in starts), bind)


def _padding(slot: Slot) -> Iterator[RedZone]:
    """The bytes between the elements of a tensor.

    A step along a dimension passes everything that the dimensions with smaller strides span (`resolve` checks this).
    The rest of the step is a gap, which occurs once for each step along this dimension and each index of the larger
    ones.
    """
    tensor, size = slot.tensor, DTYPES[slot.tensor.dtype].size_bytes
    if tensor.strides is None or not tensor.elements:
        return
    outer = [d for d in zip(tensor.shape, tensor.strides, strict=True) if d[0] > 1]
    outer.sort(key=lambda dimension: -dimension[1])
    while outer:
        extent, stride = outer.pop()  # the smallest stride that is left
        inner = 1 + sum((n - 1) * s for n, s in zip(tensor.shape, tensor.strides, strict=True) if s < stride)
        if gap := (stride - inner) * size:
            shape = (*(n for n, _ in outer), extent - 1, gap)
            strides = (*(s * size for _, s in outer), stride * size, 1)
            yield RedZone(slot.offset + inner * size, shape, strides, f"between the elements of `{tensor.name}`")
