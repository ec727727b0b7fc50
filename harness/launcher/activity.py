"""Collects when each node of a graph ran, from CUPTI's activity records.

The layout of a record is that of `cupti_activity.h` of CUDA 13. Of all three kinds only the first 32 bytes are read,
which have not changed since CUDA 11: `uint32 kind` at 0, `uint64 start` at 16, `uint64 end` at 24.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import Any, NamedTuple

from harness.shared.cupti import Cupti

MEMCPY, _MEMSET, _KERNEL = 1, 2, 10  # CUPTI_ACTIVITY_KIND_*; kernels as CONCURRENT_KERNEL
_FLUSH_FORCED = 1
# After a flush CUPTI takes one of our buffers and one on the device, and seems to zero both: with the sizes of its
# manual, 4 MiB and 3.2 MB, that takes 600 µs per call on an H100. These sizes hold some hundreds and 10,000 records,
# and CUPTI takes more buffers as needed.
_BUFFER_BYTES, _ALIGNED = 256 << 10, 8
_DEVICE_BUFFER_SIZE, _DEVICE_BUFFER_BYTES = 0, 320_000  # CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE
_Pointer, _Size = ctypes.c_void_p, ctypes.c_size_t
_Requested = ctypes.CFUNCTYPE(None, ctypes.POINTER(_Pointer), ctypes.POINTER(_Size), ctypes.POINTER(_Size))
_Completed = ctypes.CFUNCTYPE(None, _Pointer, ctypes.c_uint32, _Pointer, _Size, _Size)


class Span(NamedTuple):
    """The start and end of a node, in ns by the device's clock, and CUPTI's number for its kind."""

    start: int
    end: int
    kind: int


class _ActivityRecord(ctypes.Structure):
    _fields_ = (
        ("kind", ctypes.c_uint32),
        ("_specific", ctypes.c_byte * 12),
        ("start", ctypes.c_uint64),
        ("end", ctypes.c_uint64),
    )


class CuptiActivity:
    """Collects records from its construction on. Create one per process, before the context."""

    def __init__(self) -> None:
        self._cupti = Cupti()
        value, size = _Size(_DEVICE_BUFFER_BYTES), _Size(ctypes.sizeof(_Size))
        attribute = ctypes.c_uint32(_DEVICE_BUFFER_SIZE)
        self._cupti.call("cuptiActivitySetAttribute", attribute, ctypes.byref(size), ctypes.byref(value))
        self._buffers: dict[int, Any] = {}
        self._spare: list[Any] = []  # reused, since zeroing a new buffer takes longer than everything else in a call
        self._spans: list[Span] = []
        # They must stay alive, since CUPTI calls them until the process ends.
        self._callbacks = (_Requested(self._give_buffer), _Completed(self._read_buffer))
        self._cupti.call("cuptiActivityRegisterCallbacks", *self._callbacks)
        for kind in (_KERNEL, MEMCPY, _MEMSET):
            self._cupti.call("cuptiActivityEnable", ctypes.c_uint32(kind))

    def forget(self) -> None:
        """Discard the records so far; the device must be idle."""
        self.collect()

    def collect(self) -> list[Span]:
        """The spans of the nodes that have ended since the last call, in order of start."""
        self._cupti.call("cuptiActivityFlushAll", ctypes.c_uint32(_FLUSH_FORCED))
        spans, self._spans = sorted(self._spans), []
        return spans

    def _give_buffer(self, buffer: Any, size: Any, most_records: Any) -> None:
        memory = self._spare.pop() if self._spare else ctypes.create_string_buffer(_BUFFER_BYTES + _ALIGNED)
        at = -(-ctypes.addressof(memory) // _ALIGNED) * _ALIGNED
        self._buffers[at] = memory
        buffer[0], size[0], most_records[0] = at, _BUFFER_BYTES, 0

    def _read_buffer(self, context: int, stream: int, buffer: int, size: int, valid: int) -> None:
        memory = self._buffers.pop(buffer)
        self._spans += self._records(buffer, valid)
        self._spare.append(memory)

    def _records(self, buffer: int, valid: int) -> Iterator[Span]:
        record = _Pointer(0)
        following = self._cupti.library.cuptiActivityGetNextRecord
        while following(_Pointer(buffer), _Size(valid), ctypes.byref(record)) == 0 and record.value:
            read = _ActivityRecord.from_address(record.value)
            if read.kind in (_KERNEL, MEMCPY, _MEMSET):
                yield Span(read.start, read.end, read.kind)
