"""Builds a CUDA graph from a recording. The memory of its copies must be mapped at that time."""

from __future__ import annotations

import ctypes
from collections import defaultdict
from typing import Any

from cuda.bindings import driver

from harness.arena.mapping import check
from harness.errors import DeviceError
from harness.launcher.images import Images
from harness.recording.file import Packed
from harness.recording.schema import Blob, Edge, Empty, HostCopy, Kernel, Memcpy, Memset

_POINTER, _SIZE, _END = 1, 2, 0  # CU_LAUNCH_PARAM_BUFFER_POINTER, _BUFFER_SIZE, _END (cuda.h)
_Attribute = driver.CUlaunchAttributeID
# An edge from a kernel waits for the whole kernel, its trigger, or the start of all its blocks (cuda.h).
_PORTS = {"ended": 0, "triggered": 1, "begun": 2}
_PROGRAMMATIC = 1


class Pinned:
    """Page-locked memory with the sources of the graph's copies from the host. Close it after the graph."""

    def __init__(self) -> None:
        self._addresses: list[int] = []

    def copy_of(self, content: memoryview) -> int:
        """Copy these bytes; returns the address of the copy."""
        address = int(check(driver.cuMemHostAlloc(len(content), 0)))
        self._addresses.append(address)
        ctypes.memmove(address, bytes(content), len(content))
        return address

    def close(self) -> None:
        while self._addresses:
            check(driver.cuMemFreeHost(self._addresses.pop()))


def build(packed: Packed, images: Images, context: Any, pinned: Pinned) -> Any:
    """Build an executable graph that makes the recorded call."""
    graph = check(driver.cuGraphCreate(0))
    plain, special = _incoming(packed.recording.edges)
    nodes: list[Any] = []
    for number, node in enumerate(packed.recording.nodes):
        before = [nodes[edge.before] for edge in plain[number]]
        match node:
            case Kernel():
                added = _kernel(graph, before, node, images, packed)
            case Memset():
                added = _memset(graph, before, node, context)
            case Memcpy():
                added = _memcpy(graph, before, node, context)
            case HostCopy():
                added = _host_copy(graph, before, node, context, pinned.copy_of(packed.content(node.content)))
            case Empty():
                added = check(driver.cuGraphAddEmptyNode(graph, before, len(before)))
        nodes.append(added)
        for edge in special[number]:
            _add_edge(graph, nodes, edge)
    flag = driver.CUgraphInstantiate_flags.CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY
    executable = check(driver.cuGraphInstantiate(graph, int(flag)))
    check(driver.cuGraphDestroy(graph))
    return executable


def _incoming(edges: tuple[Edge, ...]) -> tuple[dict[int, list[Edge]], dict[int, list[Edge]]]:
    """The edges into each node, split into those that wait for the end of a node, and the others."""
    plain, special = defaultdict[int, list[Edge]](list), defaultdict[int, list[Edge]](list)
    for edge in edges:
        (plain if edge.when == "ended" else special)[edge.after].append(edge)
    return plain, special


def _add_edge(graph: Any, nodes: list[Any], edge: Edge) -> None:
    data = driver.CUgraphEdgeData()
    data.from_port, data.type = _PORTS[edge.when], driver.CUgraphDependencyType(_PROGRAMMATIC)
    # Before version 13 of the bindings this function takes no edge data.
    add = getattr(driver, "cuGraphAddDependencies_v2", driver.cuGraphAddDependencies)
    check(add(graph, [nodes[edge.before]], [nodes[edge.after]], [data], 1))


def _kernel(graph: Any, before: list[Any], node: Kernel, images: Images, packed: Packed) -> Any:
    parameters = driver.CUDA_KERNEL_NODE_PARAMS()
    parameters.func = images.function(node)
    parameters.gridDimX, parameters.gridDimY, parameters.gridDimZ = node.grid
    parameters.blockDimX, parameters.blockDimY, parameters.blockDimZ = node.block
    parameters.sharedMemBytes = node.shared_bytes
    # The driver copies the launch parameters when the node is added.
    launch = _PackedParameters(packed, node.parameters) if node.parameters else None
    if launch and node.cooperative:
        parameters.kernelParams, parameters.extra = launch.one_by_one(parameters.func), 0
    else:
        parameters.kernelParams, parameters.extra = 0, launch.address if launch else 0
    added = check(driver.cuGraphAddKernelNode(graph, before, len(before), parameters))
    value = driver.CUkernelNodeAttrValue()
    if node.cluster != (1, 1, 1):
        value.clusterDim.x, value.clusterDim.y, value.clusterDim.z = node.cluster
        _set(added, _Attribute.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, value)
    if node.cooperative:
        value = driver.CUkernelNodeAttrValue()
        value.cooperative = 1
        _set(added, _Attribute.CU_LAUNCH_ATTRIBUTE_COOPERATIVE, value)
    if node.priority:
        value = driver.CUkernelNodeAttrValue()
        value.priority = node.priority
        _set(added, _Attribute.CU_LAUNCH_ATTRIBUTE_PRIORITY, value)
    return added


def _set(node: Any, attribute: Any, value: Any) -> None:
    check(driver.cuGraphKernelNodeSetAttribute(node, attribute, value))


class _PackedParameters:
    """The parameters of a launch as one byte string, in the form of `extra`."""

    def __init__(self, packed: Packed, blob: Blob) -> None:
        content = bytes(packed.content(blob))
        self._bytes = ctypes.create_string_buffer(content, len(content))
        self._nbytes = ctypes.c_size_t(len(content))
        self._list = (ctypes.c_uint64 * 5)(
            _POINTER, ctypes.addressof(self._bytes), _SIZE, ctypes.addressof(self._nbytes), _END
        )
        self.address = ctypes.addressof(self._list)

    def one_by_one(self, function: Any) -> int:
        """The address of an array of pointers to the parameters, since a cooperative launch takes no `extra`."""
        start, addresses = ctypes.addressof(self._bytes), list[int]()
        while (layout := driver.cuFuncGetParamInfo(function, len(addresses)))[0] == driver.CUresult.CUDA_SUCCESS:
            addresses.append(start + layout[1])
            if layout[1] + layout[2] > len(self._bytes):
                raise DeviceError("a cooperative launch with fewer parameters than its function has")
        self._one_by_one = (ctypes.c_uint64 * len(addresses))(*addresses)
        return ctypes.addressof(self._one_by_one)


def _memset(graph: Any, before: list[Any], node: Memset, context: Any) -> Any:
    parameters = driver.CUDA_MEMSET_NODE_PARAMS()
    parameters.dst = driver.CUdeviceptr(node.address)
    parameters.value, parameters.elementSize = node.value, node.element_bytes
    parameters.width, parameters.height = node.width, node.height
    parameters.pitch = node.pitch if node.height > 1 else node.width * node.element_bytes
    return check(driver.cuGraphAddMemsetNode(graph, before, len(before), parameters, context))


def _memcpy(graph: Any, before: list[Any], node: Memcpy, context: Any) -> Any:
    parameters = driver.CUDA_MEMCPY3D()
    device = driver.CUmemorytype.CU_MEMORYTYPE_DEVICE
    parameters.srcMemoryType = parameters.dstMemoryType = device
    parameters.srcDevice, parameters.dstDevice = driver.CUdeviceptr(node.source), driver.CUdeviceptr(node.target)
    parameters.WidthInBytes, parameters.Height, parameters.Depth = node.width, node.height, node.depth
    many = node.height > 1 or node.depth > 1
    parameters.srcPitch = node.source_pitch if many else node.width
    parameters.dstPitch = node.target_pitch if many else node.width
    parameters.srcHeight = node.source_height if node.depth > 1 else node.height
    parameters.dstHeight = node.target_height if node.depth > 1 else node.height
    return check(driver.cuGraphAddMemcpyNode(graph, before, len(before), parameters, context))


def _host_copy(graph: Any, before: list[Any], node: HostCopy, context: Any, source: int) -> Any:
    parameters, nbytes = driver.CUDA_MEMCPY3D(), node.content.nbytes
    parameters.srcMemoryType = driver.CUmemorytype.CU_MEMORYTYPE_HOST
    parameters.dstMemoryType = driver.CUmemorytype.CU_MEMORYTYPE_DEVICE
    parameters.srcHost, parameters.dstDevice = source, driver.CUdeviceptr(node.target)
    parameters.WidthInBytes, parameters.Height, parameters.Depth = nbytes, 1, 1
    parameters.srcPitch = parameters.dstPitch = nbytes
    parameters.srcHeight = parameters.dstHeight = 1
    return check(driver.cuGraphAddMemcpyNode(graph, before, len(before), parameters, context))
