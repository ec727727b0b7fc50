"""Describes a captured graph as a recording, or says why it cannot be replayed in another process.

Runs in the runner's process, untrusted. The outputs of every timed call are checked, so a false recording gains
nothing.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Sequence
from graphlib import TopologicalSorter
from typing import Any

from cuda.bindings import driver

from harness.arena.mapping import check
from harness.recording.file import pack, unpack
from harness.recording.schema import (
    MAX_HOST_COPY_BYTES,
    Blob,
    Edge,
    Empty,
    GraphNode,
    HostCopy,
    Image,
    Kernel,
    Memcpy,
    Memset,
    Recording,
    Returned,
    Variable,
)
from harness.recording.windows import HOST_INPUTS, INPUTS, OUTPUTS, SCRATCH
from harness.runner.images import LoadedImages
from harness.runner.large_copies import in_parts
from harness.wire import checks

_NodeType = driver.CUgraphNodeType
_Attribute = driver.CUlaunchAttributeID
_Memory = driver.CUmemorytype
_ON_DEVICE = (_Memory.CU_MEMORYTYPE_DEVICE, _Memory.CU_MEMORYTYPE_UNIFIED)
_WHEN = ("ended", "triggered", "begun")  # by the port from which an edge leaves (cuda.h)


class Unrecordable(Exception):
    """The call cannot be replayed; `str()` says why."""


class GraphRecorder:
    """Makes one recording of one graph."""

    def __init__(self, images: LoadedImages) -> None:
        self._loaded = images
        self._blobs = bytearray()
        self._images: dict[int, Image] = {}  # by the order in which images were loaded
        self.note = ""
        """Why a replay may fail: a kernel seems to have a pointer to memory that launchers lack. The word may not be a
        pointer, since padding of parameters can contain anything.
        """

    def record(self, graph: Any, scratch_bytes: int, returned: Sequence[Returned], peak_bytes: int) -> bytes:
        """Make the recording, as the bytes of a file.

        Raises:
            Unrecordable: the graph has a node of a kind that cannot be replayed, or is too large for a recording.
        """
        count = check(driver.cuGraphGetNodes(graph))[1]
        nodes = list(check(driver.cuGraphGetNodes(graph, count))[0][:count])
        edges = _edges(graph)
        order = TopologicalSorter[int](dict.fromkeys(range(len(nodes)), ()))
        for before, after, _ in _by_index(nodes, edges):
            order.add(after, before)
        ordered = [nodes[place] for place in order.static_order()]
        made = [self._node(node) for node in ordered]
        parts, waits = in_parts(made, [Edge(*edge) for edge in _by_index(ordered, edges)])
        described = Recording(
            images=tuple(self._images.values()),
            nodes=tuple(parts),
            edges=tuple(waits),
            scratch_bytes=scratch_bytes,
            returned=tuple(returned),
            peak_bytes=peak_bytes,
        )
        try:
            whole = pack(described, bytes(self._blobs))
            unpack(whole)  # as the judge does, so that the participant learns here what it would refuse
        except checks.WireError as error:
            raise Unrecordable(str(error)) from None
        return whole

    def _node(self, node: Any) -> GraphNode:
        kind = check(driver.cuGraphNodeGetType(node))
        if kind == _NodeType.CU_GRAPH_NODE_TYPE_KERNEL:
            return self._kernel(node)
        if kind == _NodeType.CU_GRAPH_NODE_TYPE_MEMSET:
            return _memset(check(driver.cuGraphMemsetNodeGetParams(node)))
        if kind == _NodeType.CU_GRAPH_NODE_TYPE_MEMCPY:
            return self._copy(check(driver.cuGraphMemcpyNodeGetParams(node)))
        if kind == _NodeType.CU_GRAPH_NODE_TYPE_EMPTY:
            return Empty()
        raise Unrecordable(f"a {str(kind.name).removeprefix('CU_GRAPH_NODE_TYPE_').lower()} node")

    def _copy(self, parameters: Any) -> Memcpy | HostCopy:
        if parameters.srcMemoryType != _Memory.CU_MEMORYTYPE_HOST or parameters.dstMemoryType not in _ON_DEVICE:
            return _memcpy(parameters)
        source = int(parameters.srcHost) + parameters.srcXInBytes
        if max(parameters.Height, 1) * max(parameters.Depth, 1) > 1 or parameters.WidthInBytes > MAX_HOST_COPY_BYTES:
            raise Unrecordable(f"a copy from the host's memory in rows, or of more than {MAX_HOST_COPY_BYTES:,} bytes")
        kind = driver.CUpointer_attribute.CU_POINTER_ATTRIBUTE_MEMORY_TYPE
        if driver.cuPointerGetAttribute(kind, source)[0] != driver.CUresult.CUDA_SUCCESS:
            raise Unrecordable("a copy from memory of the host that is not page-locked")
        if HOST_INPUTS.holds(source, 1):
            raise Unrecordable("a copy of an input in the host's memory, as if it were the submission's own")
        content = self._blob(ctypes.string_at(source, parameters.WidthInBytes))
        return HostCopy(content, target=int(parameters.dstDevice) + parameters.dstXInBytes)

    def _kernel(self, node: Any) -> Kernel:
        parameters = check(driver.cuGraphKernelNodeGetParams(node))
        function = parameters.func
        if not int(function):
            function = check(driver.cuKernelGetFunction(parameters.kern))
        name = check(driver.cuFuncGetName(function)).decode()
        packed = _parameter_list(function, int(parameters.kernelParams or 0))
        packed = packed or _parameter_buffer(int(parameters.extra or 0))
        if not self.note and (foreign := _foreign_address(packed)):
            self.note = (
                f"`{name[:80]}` is given memory at {foreign:#x} from neither PyTorch in its thread nor cudaMalloc"
            )
        clustered = _attribute(node, _Attribute.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
        cluster = clustered.clusterDim  # a view into `clustered`, which must live longer
        return Kernel(
            image=self._image(name, function),
            name=name,
            grid=(parameters.gridDimX, parameters.gridDimY, parameters.gridDimZ),
            block=(parameters.blockDimX, parameters.blockDimY, parameters.blockDimZ),
            cluster=(max(cluster.x, 1), max(cluster.y, 1), max(cluster.z, 1)),
            shared_bytes=parameters.sharedMemBytes,
            cooperative=bool(_attribute(node, _Attribute.CU_LAUNCH_ATTRIBUTE_COOPERATIVE).cooperative),
            priority=int(_attribute(node, _Attribute.CU_LAUNCH_ATTRIBUTE_PRIORITY).priority),
            parameters=self._blob(packed) if packed else None,
        )

    def _image(self, name: str, function: Any) -> int:
        """The index of a function's image in the recording; adds the image with its variables' current values."""
        module = driver.cuFuncGetModule(function)[1]  # 0 if the driver does not report it
        try:
            number, code, defined = self._loaded.with_function(name, int(module))
        except LookupError as error:
            raise Unrecordable(str(error)) from None
        if number not in self._images:
            variables = tuple(found for name in defined.variables if (found := self._variable(module, name)))
            self._images[number] = Image(code=self._blob(code), variables=variables)
        return list(self._images).index(number)

    def _variable(self, module: Any, name: str) -> Variable | None:
        """A variable's current value; None if the driver does not find it, and then it keeps the value in the image."""
        status, address, nbytes = driver.cuModuleGetGlobal(module, name.encode())
        if status != driver.CUresult.CUDA_SUCCESS:
            return None
        content = bytearray(nbytes)
        check(driver.cuMemcpyDtoH(content, address, nbytes))
        return Variable(name, self._blob(bytes(content)))

    def _blob(self, content: bytes) -> Blob:
        start = len(self._blobs)
        self._blobs += content
        return Blob(start, len(content))


def _edges(graph: Any) -> list[tuple[Any, Any, str]]:
    """Every edge as (before, after, when)."""
    count = check(driver.cuGraphGetEdges(graph))[-1]
    if not count:
        return []
    before, after, data, _ = check(driver.cuGraphGetEdges(graph, count))
    return [(before[k], after[k], _when(data[k])) for k in range(count)]


def _when(data: Any) -> str:
    if data.from_port >= len(_WHEN) or data.to_port:
        raise Unrecordable(f"an edge from port {data.from_port} to port {data.to_port}")
    return _WHEN[data.from_port]


def _by_index(nodes: Sequence[Any], edges: Sequence[tuple[Any, Any, str]]) -> list[tuple[int, int, str]]:
    places = {int(node): place for place, node in enumerate(nodes)}
    return [(places[int(before)], places[int(after)], when) for before, after, when in edges]


def _attribute(node: Any, attribute: Any) -> Any:
    return check(driver.cuGraphKernelNodeGetAttribute(node, attribute))


def _parameter_buffer(address: int) -> bytes:
    """Parameters that were passed as one buffer, in a zero-terminated list of (key, value) pairs (cuda.h)."""
    if not address:
        return b""
    options, words = {}, ctypes.c_uint64 * 2
    while (pair := words.from_address(address))[0]:
        options[pair[0]] = pair[1]
        address += ctypes.sizeof(words)
    return ctypes.string_at(options[1], ctypes.c_size_t.from_address(options[2]).value)


def _parameter_list(function: Any, address: int) -> bytes:
    """Parameters that were passed one by one, packed in the function's layout."""
    packed, index = bytearray(), 0
    while address:
        status, offset, nbytes = driver.cuFuncGetParamInfo(function, index)
        if status != driver.CUresult.CUDA_SUCCESS:
            break
        at = ctypes.c_void_p.from_address(address + index * ctypes.sizeof(ctypes.c_void_p)).value
        if not at:
            raise Unrecordable(f"parameter {index} of a kernel is missing")
        packed.extend(bytes(offset + nbytes - len(packed)))
        packed[offset : offset + nbytes] = ctypes.string_at(at, nbytes)
        index += 1
    return bytes(packed)


def _foreign_address(parameters: bytes) -> int:
    """The first word that is a valid address outside the call's windows; 0 if there is none."""
    kind = driver.CUpointer_attribute.CU_POINTER_ATTRIBUTE_MEMORY_TYPE
    for (word,) in struct.iter_unpack("<Q", parameters[: len(parameters) & ~7]):
        ours = any(window.holds(word, 1) for window in (INPUTS, HOST_INPUTS, OUTPUTS, SCRATCH))
        if word and not ours and driver.cuPointerGetAttribute(kind, word)[0] == driver.CUresult.CUDA_SUCCESS:
            return int(word)
    return 0


def _memset(parameters: Any) -> Memset:
    return Memset(
        address=int(parameters.dst),
        value=parameters.value & ((1 << (8 * parameters.elementSize)) - 1),
        element_bytes=parameters.elementSize,
        width=parameters.width,
        height=parameters.height,
        pitch=parameters.pitch if parameters.height > 1 else 0,
    )


def _memcpy(parameters: Any) -> Memcpy:
    if parameters.srcMemoryType not in _ON_DEVICE or parameters.dstMemoryType not in _ON_DEVICE:
        raise Unrecordable("a copy from or to the host's memory")
    height, depth = max(parameters.Height, 1), max(parameters.Depth, 1)
    return Memcpy(
        source=int(parameters.srcDevice)
        + parameters.srcXInBytes
        + parameters.srcPitch * (parameters.srcY + parameters.srcHeight * parameters.srcZ),
        target=int(parameters.dstDevice)
        + parameters.dstXInBytes
        + parameters.dstPitch * (parameters.dstY + parameters.dstHeight * parameters.dstZ),
        width=parameters.WidthInBytes,
        height=height,
        depth=depth,
        source_pitch=parameters.srcPitch,
        target_pitch=parameters.dstPitch,
        source_height=parameters.srcHeight,
        target_height=parameters.dstHeight,
    )
