"""Allocates the submission's memory at addresses that are also free in a launcher. Untrusted.

PyTorch's caching allocator (while the pool is in use) and the cudaMalloc of a `.cu` allocate from here. Addresses are
never reused, since the pointers of a captured call must stay valid.
"""

from __future__ import annotations

import ctypes
import threading
from typing import Any

import torch
from cuda.bindings import driver

from harness.arena.mapping import check, create, granules, imported, map_at, reserve
from harness.errors import DeviceError
from harness.recording.windows import SCRATCH
from harness.runner.blocks import Blocks
from harness.runner.results import IsNew

_Allocate = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p)
_Free = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p)
_FreeOurs = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)


class Peak:
    """The peak of memory allocated since `begin`, in bytes.

    It is the sum of the peaks of PyTorch and of cudaMalloc. They may occur at different times, so it is an upper bound.
    """

    def __init__(self) -> None:
        self._before = self._held = self._most = 0

    def begin(self) -> None:
        torch.cuda.reset_peak_memory_stats()
        self._before, self._held, self._most = torch.cuda.memory_allocated(), 0, 0

    def add(self, nbytes: int) -> None:
        """Count memory that PyTorch does not allocate; negative when it is freed."""
        self._held += nbytes
        self._most = max(self._most, self._held)

    @property
    def nbytes(self) -> int:
        return max(0, torch.cuda.max_memory_allocated() - self._before) + self._most


class Scratch:
    """A PyTorch memory pool over the scratch window. One per process."""

    def __init__(self) -> None:
        self._window_bytes = 1 << 38
        self._next = reserve(self._window_bytes, SCRATCH.start)
        self._segments: dict[int, tuple[int, Any]] = {}  # by address: size and handle
        self._peak = Peak()
        # As `CUDAPluggableAllocator` does with a library's functions. They must stay alive, since PyTorch calls them.
        ours = _Allocate(self._allocate_ours), _FreeOurs(self._free_ours)
        self._callbacks = (_Allocate(self._allocate), _Free(self._free), *ours)
        allocate, free, *own = (ctypes.cast(callback, ctypes.c_void_p).value or 0 for callback in self._callbacks)
        self.functions = (own[0], own[1])
        """C functions: `void *allocate(ptrdiff_t bytes, int device, void *stream)`, NULL if out of memory; `int
        free(void *)`, 0 for memory not allocated here.
        """
        self._lock = threading.Lock()
        self._allocator = torch._C._cuda_customAllocator(allocate, free)
        self.pool = torch.cuda.MemPool(self._allocator)
        self._kept: list[Any] = []
        self._before: Blocks  # the call that was captured last

    def keep(self, graph: Any) -> None:
        """Keep a graph alive that was captured into the pool.

        When the last graph dies, PyTorch 2.11 drops its host pool of the same id, and refuses the next capture.
        """
        self._kept.append(graph)

    def renew(self, failed: Any) -> None:
        """Switch to another pool after a failed capture, since PyTorch considers the old pool still in use.

        The old pool is kept alive because it has live tensors, and the failed graph because PyTorch points to it.
        """
        self._kept.append((self.pool, failed))
        self.pool = torch.cuda.MemPool(self._allocator)

    @property
    def nbytes(self) -> int:
        """The number of bytes in use, from the start of the window."""
        return self._next - SCRATCH.start

    def allocated_from_now_on(self) -> IsNew:
        """A function that tells whether PyTorch allocated memory here after this moment."""
        before, now = Blocks(), list[Blocks]()
        self._before = before

        def is_new(low: int, high: int) -> bool:
            if not now:  # at the first query all results of the call exist
                now.append(Blocks())
            here = SCRATCH.start <= low and high <= self._next
            return here and now[0].contain(low, high) and not before.overlap(low, high)

        return is_new

    def _allocate(self, nbytes: int, ordinal: int, stream: int) -> int | None:
        try:
            with self._lock:
                return self._segment(granules(nbytes, ordinal), ordinal)
        except DeviceError:
            return None  # PyTorch raises its OutOfMemoryError

    def measure_peak_from_now_on(self) -> None:
        """Reset `peak_bytes`. Call this inside a capture, since beginning a capture allocates memory, too."""
        self._peak.begin()

    @property
    def peak_bytes(self) -> int:
        """The peak of memory allocated since `measure_peak_from_now_on`, without what was allocated before."""
        return min(self._peak.nbytes, self.nbytes)

    def _allocate_ours(self, nbytes: int, ordinal: int, stream: int) -> int | None:
        address = self._allocate(nbytes, ordinal, stream)
        if address is not None:
            self._peak.add(self._segments[address][0])
        return address

    def _segment(self, size: int, ordinal: int) -> int | None:
        """Make a new segment and return its address; None if the window is used up.

        Raises:
            DeviceError: out of memory.
        """
        if self.nbytes + size > self._window_bytes:
            return None
        handle = create(size, ordinal)
        try:
            map_at(self._next, size, handle, ordinal, writable=True)
        except DeviceError:
            driver.cuMemRelease(handle)
            raise
        address, self._next = self._next, self._next + size
        self._segments[address] = size, handle
        return address

    def _free_ours(self, address: int) -> int:
        """Free a segment; returns 0 if there is none at this address."""
        if address not in self._segments:
            return 0
        self._peak.add(-self._segments[address][0])
        self._free(address, 0, 0, 0)
        return 1

    def _free(self, address: int, nbytes: int, ordinal: int, stream: int) -> None:
        size, handle = self._segments.pop(address)
        driver.cuMemUnmap(address, size)
        driver.cuMemRelease(handle)

    def copy_to(self, descriptor: int) -> None:
        """Copy all memory in use into an arena of `nbytes`; the rest of the arena becomes zero.

        Memory that the call replaced while it was captured counts as in use, because a replay reads it. Other memory
        that PyTorch keeps for reuse, such as the call's intermediate results, may be as large as all outputs, and its
        content does not matter.
        """
        ordinal = int(torch.cuda.current_device())
        sizes = {address: nbytes for address, (nbytes, _) in self._segments.items()}
        parts = Blocks().parts_in_use(sizes, self._before)
        size, handle = granules(self.nbytes, ordinal), imported(descriptor)
        at = reserve(size)
        try:
            map_at(at, size, handle, ordinal, writable=True)
            check(driver.cuMemsetD8(at, 0, size))
            for address, nbytes in parts:
                check(driver.cuMemcpyDtoD(at + address - SCRATCH.start, address, nbytes))
            check(driver.cuCtxSynchronize())
            check(driver.cuMemUnmap(at, size))
        finally:
            driver.cuMemRelease(handle)
            driver.cuMemAddressFree(at, size)
