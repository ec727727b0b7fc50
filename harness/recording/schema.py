"""The content of a recording: a closed set of records with limits, checked like the frames of `harness.wire`."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from harness.recording.windows import HOST_INPUTS, INPUTS, OUTPUTS, SCRATCH, AddressRange
from harness.wire.checks import FieldCheck, WireError, boolean, checked, choice, integer, many, record, text

MAX_NODES = 4096
MAX_EDGES = 16 * MAX_NODES
MAX_IMAGES = 256
MAX_VARIABLES = 4096  # of one image
MAX_PARAMETER_BYTES = 32_764  # the limit for kernel parameters since CUDA 12.1
MAX_SCRATCH_BYTES = 1 << 36
MAX_HOST_COPY_BYTES = 1 << 20
MAX_RETURNED = 4096
_MAX_BLOCK_THREADS = 1024
_NAME = text(8192)  # PyTorch has mangled names of more than 2000 characters
_ADDRESS = integer(0, (1 << 57) - 1)
_EXTENT = integer(1, 1 << 40)


@dataclass(frozen=True)
class Blob:
    """Bytes [start, start + nbytes) after the header of a file."""

    start: int = checked(integer(0, 1 << 40))
    nbytes: int = checked(integer(1, 1 << 40))


@dataclass(frozen=True)
class Variable:
    """A `__device__` or `__constant__` variable of an image, with its content when the call was captured."""

    name: str = checked(_NAME)
    content: Blob = checked(record(Blob))


@dataclass(frozen=True)
class Image:
    """A code image that the driver loaded: an ELF file for one architecture, so that nothing is compiled later."""

    code: Blob = checked(record(Blob))
    variables: tuple[Variable, ...] = checked(many(record(Variable), MAX_VARIABLES))


def _three(most: tuple[int, int, int]) -> FieldCheck:
    axes = [integer(1, limit) for limit in most]

    def check(value: Any) -> tuple[int, int, int]:
        if not isinstance(value, list) or len(value) != len(axes):
            raise WireError("expected three integers")
        x, y, z = (axis(item) for axis, item in zip(axes, value, strict=True))
        return x, y, z

    return check


def _block(value: Any) -> tuple[int, int, int]:
    dimensions: tuple[int, int, int] = _three((1024, 1024, 64))(value)
    if math.prod(dimensions) > _MAX_BLOCK_THREADS:
        raise WireError(f"expected a block of at most {_MAX_BLOCK_THREADS} threads")
    return dimensions


@dataclass(frozen=True)
class Kernel:
    """A launch of one function; its parameters are packed in the function's own layout."""

    image: int = checked(integer(0, MAX_IMAGES - 1))
    name: str = checked(_NAME)
    grid: tuple[int, int, int] = checked(_three(((1 << 31) - 1, 65_535, 65_535)))
    block: tuple[int, int, int] = checked(_block)
    cluster: tuple[int, int, int] = checked(_three((32, 32, 32)))  # of blocks; 1, 1, 1 if there are no clusters
    shared_bytes: int = checked(integer(0, 1 << 20))  # dynamic
    cooperative: bool = checked(boolean)
    priority: int = checked(integer(-16, 16))
    parameters: Blob | None = checked(lambda value: None if value is None else record(Blob)(value))


@dataclass(frozen=True)
class Memset:
    """`height` rows of `width` elements, each set to `value`."""

    address: int = checked(_ADDRESS)
    value: int = checked(integer(0, (1 << 32) - 1))
    element_bytes: int = checked(integer(1, 4))
    width: int = checked(_EXTENT)
    height: int = checked(_EXTENT)
    pitch: int = checked(integer(0, 1 << 40))  # bytes from row to row; meaningless if there is only one


@dataclass(frozen=True)
class Memcpy:
    """`depth` slices of `height` rows of `width` bytes, from device memory to device memory."""

    source: int = checked(_ADDRESS)
    target: int = checked(_ADDRESS)
    width: int = checked(_EXTENT)
    height: int = checked(_EXTENT)
    depth: int = checked(_EXTENT)
    source_pitch: int = checked(integer(0, 1 << 40))
    target_pitch: int = checked(integer(0, 1 << 40))
    source_height: int = checked(integer(0, 1 << 40))  # rows from slice to slice; meaningless if there is only one
    target_height: int = checked(integer(0, 1 << 40))


@dataclass(frozen=True)
class HostCopy:
    """A small copy from page-locked memory of the host into scratch memory, with the content at recording time.

    This is right for data that the host computes without the inputs, such as addresses of tensors.
    """

    content: Blob = checked(record(Blob))
    target: int = checked(_ADDRESS)


@dataclass(frozen=True)
class Empty:
    """A node that does nothing; branches of a capture join there."""


GraphNode = Kernel | Memset | Memcpy | HostCopy | Empty
_NODES = {cls.__name__: record(cls) for cls in (Kernel, Memset, Memcpy, HostCopy, Empty)}
_KIND = choice(*_NODES)


def _node(value: Any) -> GraphNode:
    """Check a node: an object with the name of its class among the fields."""
    if not isinstance(value, dict):
        raise WireError("expected a node")
    kind = _KIND(value.get("kind"))
    node: GraphNode = _NODES[kind]({name: field for name, field in value.items() if name != "kind"})
    return node


@dataclass(frozen=True)
class Edge:
    """`after` begins when `before` has ended, or, with Hopper's programmatic launch, has triggered or started."""

    before: int = checked(integer(0, MAX_NODES - 1))
    after: int = checked(integer(0, MAX_NODES - 1))
    when: str = checked(choice("ended", "triggered", "begun"))


@dataclass(frozen=True)
class Returned:
    """A result in scratch memory, which the judge copies to an output after the call."""

    source: int = checked(_ADDRESS)
    target: int = checked(_ADDRESS)  # the output's
    nbytes: int = checked(_EXTENT)


@dataclass(frozen=True)
class Recording:
    """One call. Nodes are in topological order, so every edge leads forward.

    Attributes:
        scratch_bytes: how much of the scratch window is in use, from its start; its content is passed separately.
        returned: the results that the judge copies from scratch memory after the call.
        peak_bytes: the peak of the call's allocations, including results; a claim of the runner, which is only shown.
    """

    images: tuple[Image, ...] = checked(many(record(Image), MAX_IMAGES))
    nodes: tuple[GraphNode, ...] = checked(many(_node, MAX_NODES, 1))
    edges: tuple[Edge, ...] = checked(many(record(Edge), MAX_EDGES))
    scratch_bytes: int = checked(integer(0, MAX_SCRATCH_BYTES))
    returned: tuple[Returned, ...] = checked(many(record(Returned), MAX_RETURNED))
    peak_bytes: int = checked(integer(0, MAX_SCRATCH_BYTES), default=0)

    @property
    def is_in_a_row(self) -> bool:
        """Whether an edge leads from each node to the next."""
        edges = {(edge.before, edge.after) for edge in self.edges}
        return all((place, place + 1) in edges for place in range(len(self.nodes) - 1))

    @property
    def overlaps(self) -> bool:
        """Whether nodes may run side by side."""
        return not self.is_in_a_row or any(edge.when != "ended" for edge in self.edges)


def read(document: Any) -> Recording:
    """Read a recording from a JSON value.

    Raises:
        WireError: it is not a recording, or is inconsistent: an edge that leads back, a launch from a missing image, an
            address outside the windows.
    """
    recording: Recording = record(Recording)(document)
    seen: set[tuple[int, int]] = set()
    for edge in recording.edges:
        if not edge.before < edge.after < len(recording.nodes):
            raise WireError(f"an edge from node {edge.before} to node {edge.after} of {len(recording.nodes)}")
        if (edge.before, edge.after) in seen:
            raise WireError(f"two edges from node {edge.before} to node {edge.after}")
        seen.add((edge.before, edge.after))
    if recording.peak_bytes > recording.scratch_bytes:
        raise WireError(f"a call that allocates {recording.peak_bytes:,} of {recording.scratch_bytes:,} bytes")
    scratch = AddressRange(SCRATCH.start, recording.scratch_bytes)
    for number, node in enumerate(recording.nodes):
        try:
            _consistent(node, len(recording.images), scratch)
        except WireError as error:
            raise WireError(f"node {number}: {error}") from None
    for result in recording.returned:
        _inside(result.source, result.nbytes, (scratch,))
        _inside(result.target, result.nbytes, (OUTPUTS,))
    return recording


def _consistent(node: GraphNode, images: int, scratch: AddressRange) -> None:
    match node:
        case Kernel():
            if node.image >= images:
                raise WireError(f"a function of image {node.image} of {images}")
            if node.parameters and node.parameters.nbytes > MAX_PARAMETER_BYTES:
                raise WireError(f"more than {MAX_PARAMETER_BYTES:,} bytes of parameters")
            if any(blocks % size for blocks, size in zip(node.grid, node.cluster, strict=True)):
                raise WireError("a grid that is not made of whole clusters")
        case Memset():
            if node.element_bytes == 3 or node.value >= 1 << (8 * node.element_bytes):
                raise WireError("a value that does not fit its elements")
            row = node.width * node.element_bytes
            _inside(node.address, _extent(row, node.height, node.pitch), (OUTPUTS, scratch))
        case Memcpy():
            for address, pitch, rows, ranges in (
                (node.source, node.source_pitch, node.source_height, (INPUTS, HOST_INPUTS, OUTPUTS, scratch)),
                (node.target, node.target_pitch, node.target_height, (OUTPUTS, scratch)),
            ):
                slice_bytes = _extent(node.width, node.height, pitch)
                _inside(address, _extent(slice_bytes, node.depth, pitch * rows), ranges)
        case HostCopy():
            if node.content.nbytes > MAX_HOST_COPY_BYTES:
                raise WireError(f"a copy of {node.content.nbytes:,} bytes from the host")
            _inside(node.target, node.content.nbytes, (scratch,))


def _extent(row: int, rows: int, pitch: int) -> int:
    """The bytes from the start of the first row to the end of the last."""
    if rows > 1 and pitch < row:
        raise WireError("rows that overlap")
    return row + (rows - 1) * pitch


def _inside(address: int, nbytes: int, ranges: Iterable[AddressRange]) -> None:
    if not any(part.holds(address, nbytes) for part in ranges):
        raise WireError(f"{nbytes:,} bytes at {address:#x}, which is not memory of the call's")
