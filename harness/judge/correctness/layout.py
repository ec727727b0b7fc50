"""Where every tensor of every call is in the arenas, with red zones around the outputs. Pure, trusted.

There is an arena for inputs, one for outputs, and one for inputs that lie in the host's memory, if there are any. An
arena holds `sets` regions of one stride. In the output arena each tensor is between red zones, so a store that runs
past an output hits bytes whose content the judge knows. So does one between the elements of an output with strides.
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

ALIGNMENT = 512  # cudaMalloc guarantees 256; kernels may rely on vector loads either way
RED_ZONE_BYTES = 4096
LARGE_BYTES = 1 << 30  # a call that takes more than this has no second copy of its tensors
Place = Literal["inputs", "outputs", "host"]
"""One of the arenas of a call; `host` has the inputs that lie in the host's memory."""


@dataclass(frozen=True)
class Slot:
    """One tensor's place within a set's region: bytes [offset, offset + nbytes)."""

    tensor: ResolvedTensor
    offset: int
    nbytes: int

    @property
    def writable(self) -> bool:
        return self.tensor.role != "input"

    @property
    def place(self) -> Place:
        """The arena that it is in."""
        if self.writable:
            return "outputs"
        return "host" if self.tensor.memory == "host" else "inputs"

    def words(self, drawn: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
        """Map numbers from 0 to 1 to places of its elements in the region, in words of 8 bytes."""
        if self.tensor.strides is None:
            return self.offset // 8 + (drawn * -(-self.nbytes // 8)).astype(np.int64)
        size = DTYPES[self.tensor.dtype].size_bytes
        element, byte = np.divmod((drawn * self.tensor.elements * size).astype(np.int64), size)
        index = np.unravel_index(element, self.tensor.shape)
        at = sum(i * stride for i, stride in zip(index, self.tensor.strides, strict=True))
        return np.asarray((self.offset + at * size + byte) // 8, dtype=np.int64)


@dataclass(frozen=True)
class RedZone:
    """Bytes of a set's output region that belong to no output: those that `shape` and `strides` reach from `low` on."""

    low: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    place: str
    element_bytes: int = 0
    """The size of an element of the output that ends where this begins; 0: no output does."""

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape)

    @property
    def high(self) -> int:
        """Where the last of these bytes ends."""
        assert self.nbytes
        return self.low + 1 + sum((n - 1) * stride for n, stride in zip(self.shape, self.strides, strict=True))


def _aligned(offset: int) -> int:
    return -(-offset // ALIGNMENT) * ALIGNMENT


class Layout:
    """The regions of one set in its arenas; set k begins at k × stride."""

    def __init__(self, case: ResolvedCase, *, keeps_copy: bool = False) -> None:
        """`keeps_copy`: whether the judge keeps a copy of what a call gets, since `generate` made some of it."""
        slots: list[Slot] = []
        inputs, outputs = {"device": 0, "host": 0}, RED_ZONE_BYTES
        for tensor in case.tensors:
            nbytes = tensor.span * DTYPES[tensor.dtype].size_bytes
            if tensor.role == "input":
                at = inputs[tensor.memory]
                slots.append(Slot(tensor, at, nbytes))
                inputs[tensor.memory] = _aligned(at + max(nbytes, 1))  # without elements it has an address, too
            else:
                slots.append(Slot(tensor, outputs, nbytes))
                outputs = _aligned(outputs + nbytes) + RED_ZONE_BYTES
        self.slots = tuple(slots)
        self.outputs = tuple(slot for slot in slots if slot.writable)
        self.input_stride = max(inputs["device"], ALIGNMENT)
        self.output_stride = outputs
        self.host_stride = inputs["host"]  # 0: no input is in the host's memory, and there is no arena for them
        self.keeps_copy = keeps_copy

    @property
    def strides(self) -> dict[Place, int]:
        """The bytes of one set in each arena that a call has, in the order in which a runner gets them."""
        strides: dict[Place, int] = {"inputs": self.input_stride, "outputs": self.output_stride}
        return strides | {"host": self.host_stride} if self.host_stride else strides

    @property
    def read_stride(self) -> int:
        """The bytes of one set in the arenas of inputs."""
        return self.input_stride + self.host_stride

    @property
    def bytes_per_set(self) -> int:
        """The memory that one set takes in the judge: all arenas, the snapshot, and a copy of what it gets."""
        inouts = any(slot.tensor.role == "inout" for slot in self.outputs)
        copy = self.read_stride + (self.output_stride if inouts else 0) if self.keeps_copy else 0
        return self.read_stride + 2 * self.output_stride + copy

    @property
    def is_large(self) -> bool:
        """Whether a set takes so much that nothing of it is held twice (docs/decisions/0006)."""
        return self.bytes_per_set > LARGE_BYTES

    def red_zones(self) -> list[RedZone]:
        """All bytes of a set's output region that belong to no output, each range with what it borders."""
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
        """The commands that tell the runner where everything is: tensors, as many per frame as fit, then the rest.

        `seed` is that of the weights, where the submission is a module.
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

    A step along a dimension goes past all that those with smaller strides span (`resolve`), and what it leaves out is a
    block of bytes, once for each step along this dimension and each place along the larger ones.
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
