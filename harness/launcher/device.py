"""The GPU as a launcher uses it: a context, one stream, a way to evict the cache, and two of the clocks."""

from __future__ import annotations

import ctypes
import threading
import time
from typing import Any, NamedTuple

from cuda.bindings import driver

from harness.arena.mapping import check

ORDINAL = 0  # the sandbox has one GPU
_NON_BLOCKING = 1
_PATIENCE_S = 0.1  # enqueueing a graph takes microseconds, unless the launch waits for the graph's own nodes
_MAX_RELEASES = 3  # after so many the stream is no longer held; the first launches may just be slow
_BLOCKS, _THREADS = 1024, 256
_SHORT_BYTES = 1 << 20
_PAGE_BYTES = 1 << 21  # covered by one entry of the device's TLB

# `read_all` adds up n times 16 bytes starting at `at`. It writes the sum only if it is one number in four billion, so
# that a compiler cannot remove the reads. `touch_pages` reads a word near the end of each page, in every block.
_KERNELS = b"""
.version 7.0
.target sm_70
.address_size 64
.visible .entry read_all(.param .u64 at, .param .u64 n, .param .u64 out)
{
  .reg .pred %more, %never;
  .reg .b32 %sum, %a, %b, %c, %d, %block, %threads, %thread, %blocks;
  .reg .b64 %base, %count, %to, %i, %step, %wide, %address;
  ld.param.u64 %base, [at];
  ld.param.u64 %count, [n];
  ld.param.u64 %to, [out];
  mov.u32 %block, %ctaid.x;
  mov.u32 %threads, %ntid.x;
  mov.u32 %thread, %tid.x;
  mov.u32 %blocks, %nctaid.x;
  mul.wide.u32 %i, %block, %threads;
  cvt.u64.u32 %wide, %thread;
  add.u64 %i, %i, %wide;
  mul.wide.u32 %step, %blocks, %threads;
  mov.u32 %sum, 0;
  setp.ge.u64 %more, %i, %count;
  @%more bra done;
again:
  shl.b64 %address, %i, 4;
  add.u64 %address, %base, %address;
  ld.global.v4.u32 {%a, %b, %c, %d}, [%address];
  xor.b32 %a, %a, %b;
  xor.b32 %c, %c, %d;
  xor.b32 %a, %a, %c;
  add.u32 %sum, %sum, %a;
  add.u64 %i, %i, %step;
  setp.lt.u64 %more, %i, %count;
  @%more bra again;
  setp.ne.u32 %never, %sum, 0x9e3779b9;
  @%never bra done;
  st.global.u32 [%to], %sum;
done:
  ret;
}

.visible .entry touch_pages(.param .u64 at, .param .u64 pages)
{
  .reg .pred %done;
  .reg .b32 %thread, %threads, %read;
  .reg .b64 %base, %count, %i, %step, %address;
  ld.param.u64 %base, [at];
  ld.param.u64 %count, [pages];
  mov.u32 %thread, %tid.x;
  mov.u32 %threads, %ntid.x;
  cvt.u64.u32 %i, %thread;
  cvt.u64.u32 %step, %threads;
next:
  setp.ge.u64 %done, %i, %count;
  @%done bra end;
  shl.b64 %address, %i, 21;
  add.u64 %address, %base, %address;
  ld.volatile.global.u32 %read, [%address + 2097024];
  add.u64 %i, %i, %step;
  bra next;
end:
  ret;
}
\0"""


class Times(NamedTuple):
    """The time of a launch between events, and on the host from releasing the stream until the device is idle."""

    event_ns: int
    span_ns: int


class LauncherDevice:
    """The primary context of the sandbox's GPU, current in this thread."""

    def __init__(self) -> None:
        check(driver.cuInit(0))
        device = check(driver.cuDeviceGet(ORDINAL))
        self.context = check(driver.cuDevicePrimaryCtxRetain(device))
        check(driver.cuCtxSetCurrent(self.context))
        self.stream = check(driver.cuStreamCreate(_NON_BLOCKING))
        self._start, self._end = check(driver.cuEventCreate(0)), check(driver.cuEventCreate(0))
        word = check(driver.cuMemHostAlloc(4, driver.CU_MEMHOSTALLOC_DEVICEMAP))
        self._word = ctypes.c_int32.from_address(int(word))
        self._word_on_device = check(driver.cuMemHostGetDevicePointer(word, 0))
        self._releases = 0
        self._held_since: float | None = None
        threading.Thread(target=self._watch, daemon=True).start()
        attribute = driver.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE
        self._cache_bytes = 3 * int(check(driver.cuDeviceGetAttribute(attribute, device)))
        self._cache = check(driver.cuMemAlloc(self._cache_bytes))
        check(driver.cuMemsetD8(self._cache, 1, self._cache_bytes))
        self._out = check(driver.cuMemAlloc(4))
        attribute = driver.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT
        self._full_blocks = 2 * int(check(driver.cuDeviceGetAttribute(attribute, device)))
        module = check(driver.cuModuleLoadData(_KERNELS))
        self._read_all = check(driver.cuModuleGetFunction(module, b"read_all"))
        self._touch_pages = check(driver.cuModuleGetFunction(module, b"touch_pages"))

    def evict(self) -> None:
        """Replace the content of L2 by reading; written lines would be flushed while the next kernel is timed.

        First, lines that the submission made persisting are reset to normal.
        """
        check(driver.cuCtxResetPersistingL2Cache())
        self._read(self._cache_bytes)

    def wait(self) -> None:
        """Wait until the stream is idle."""
        check(driver.cuStreamSynchronize(self.stream))

    def touch(self, address: int, nbytes: int) -> None:
        """Let every multiprocessor translate the addresses of newly mapped memory.

        That takes 1.7 µs on an H100, which a call on memory that has been mapped for a while does not pay. Afterwards a
        word near the end of every page is in L2.
        """
        types = (ctypes.c_uint64, ctypes.c_uint64)
        values = (address, -(-nbytes // _PAGE_BYTES))
        launch = driver.cuLaunchKernel
        # Two blocks of this size fill a multiprocessor, so every multiprocessor gets some.
        check(launch(self._touch_pages, self._full_blocks, 1, 1, 1024, 1, 1, 0, self.stream, (values, types), 0))

    def own_graph(self) -> Any:
        """Make an executable graph of our own short kernel."""
        check(driver.cuStreamBeginCapture(self.stream, driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED))
        self._read(_SHORT_BYTES)
        graph = check(driver.cuStreamEndCapture(self.stream))
        executable = check(driver.cuGraphInstantiate(graph, 0))
        check(driver.cuGraphDestroy(graph))
        check(driver.cuGraphUpload(executable, self.stream))
        return executable

    def _read(self, nbytes: int) -> None:
        values = (int(self._cache), nbytes // 16, int(self._out))
        types = (ctypes.c_uint64, ctypes.c_uint64, ctypes.c_uint64)
        launch = driver.cuLaunchKernel
        check(launch(self._read_all, _BLOCKS, 1, 1, _THREADS, 1, 1, 0, self.stream, (values, types), 0))

    def reset_hold(self) -> None:
        """Hold the stream for the next recording even if it could not be held for the last one."""
        self._releases = 0

    def time(self, graph: Any) -> Times:
        """Launch a graph while the stream is held, so that no clock includes the time to enqueue it."""
        held = self._releases < _MAX_RELEASES
        if held:
            self._word.value = 0
            geq = driver.CUstreamWaitValue_flags.CU_STREAM_WAIT_VALUE_GEQ
            check(driver.cuStreamWaitValue32(self.stream, self._word_on_device, 1, geq))
        begun = time.perf_counter_ns()
        try:
            check(driver.cuEventRecord(self._start, self.stream))
            self._held_since = time.monotonic() if held else None
            check(driver.cuGraphLaunch(graph, self.stream))
            check(driver.cuEventRecord(self._end, self.stream))
            if held:
                begun = time.perf_counter_ns()
        finally:
            self._held_since = None
            self._word.value = 1
        check(driver.cuStreamSynchronize(self.stream))
        span_ns = time.perf_counter_ns() - begun
        check(driver.cuCtxSynchronize())  # nothing may run when the judge changes the memory
        return Times(round(check(driver.cuEventElapsedTime(self._start, self._end)) * 1e6), span_ns)

    def _watch(self) -> None:
        """Release the stream whenever a launch does not return because the stream is held."""
        while True:
            time.sleep(_PATIENCE_S / 2)
            since = self._held_since
            if since is not None and time.monotonic() - since > _PATIENCE_S:
                self._held_since = None
                self._releases += 1
                self._word.value = 1
