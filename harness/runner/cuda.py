"""The GPU as the runner sees it: one stream, events around a launch, and per-call graphs under one parent graph."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal

import torch
from cuda.bindings import driver

from harness.arena.mapping import check
from harness.errors import DeviceError
from harness.recording import Returned
from harness.runner.device import AssembledBatch, CallSet, CapturedCall, HoldKind, PlainCalls, Timing
from harness.runner.hold import Hold
from harness.runner.kernel import OneCall
from harness.runner.results import IsNew
from harness.runner.styles import ReturningCall

if TYPE_CHECKING:
    from harness.runner.images import LoadedImages
    from harness.runner.scratch import Scratch

_PER_THREAD = 2  # cudaStreamPerThread (driver_types.h)
_GRAPH_LAUNCH_NS = 300_000  # launching a graph of 2048 nodes takes the host 70 to 200 µs on an H200


class Cuda:
    """All calls of a submission are made on one stream, since the legacy default stream cannot be captured: a side
    stream, or this thread's own default stream.
    """

    kind: Literal["cpu", "cuda"] = "cuda"

    def __init__(self, images: LoadedImages | None = None) -> None:
        self._images = images
        self._stream = torch.cuda.Stream()
        torch.cuda.set_stream(self._stream)
        properties = torch.cuda.get_device_properties(self._stream.device)
        self._cache = torch.ones(3 * properties.L2_cache_size // 4, dtype=torch.int32, device="cuda")
        self._sum = torch.empty((), dtype=torch.int64, device="cuda")
        # The driver's own events: a submission's changes to `torch.cuda.Event` do not affect them.
        self._start, self._end = check(driver.cuEventCreate(0)), check(driver.cuEventCreate(0))
        self._hold = Hold(self._stream.cuda_stream)
        self._held, self._batches_held, self._enqueue_ns = True, True, 0
        self._scratch = _scratch() if images is not None else None
        self._pooling = contextlib.ExitStack()
        self._allocate_from_scratch()

    def stream(self) -> int:
        stream: int = self._stream.cuda_stream
        return stream

    def follow_default_stream(self) -> None:
        """From here on make calls on this thread's own default stream, and let nvcc compile for such streams.

        What `load_inline` compiles is often launched on no stream in particular, and so is captured, and timed, too.
        """
        flags = (os.environ.get("NVCC_APPEND_FLAGS", ""), "--default-stream=per-thread")
        os.environ["NVCC_APPEND_FLAGS"] = " ".join(flags).strip()
        torch.cuda.synchronize()
        self._stream = torch.cuda.ExternalStream(_PER_THREAD)
        torch.cuda.set_stream(self._stream)
        self._hold = Hold(self._stream.cuda_stream)

    def allocator(self) -> tuple[int, int] | None:
        """Addresses of C functions that allocate and free memory that can be recorded; see `scratch`."""
        return self._scratch.functions if self._scratch is not None else None

    def synchronize(self) -> None:
        torch.cuda.synchronize()

    def healthy(self) -> bool:
        """Whether the context still works: after an illegal access every later call fails too."""
        try:
            torch.cuda.synchronize()
        except RuntimeError:
            return False
        return True

    def evict(self) -> None:
        """Replace the contents of L2 by reading: written lines would be flushed during the kernel's time.

        Lines that a submission made persisting are reset to normal first. The device is idle when this returns.
        """
        check(driver.cuCtxResetPersistingL2Cache())
        torch.sum(self._cache, dim=0, out=self._sum)
        torch.cuda.synchronize()

    def time(self, batch: AssembledBatch) -> Timing:
        """Time a batch: behind the hold if launching it runs none of the submission's code and does not block."""
        held = batch.holdable and self._batches_held
        if held:
            self._hold.close(_GRAPH_LAUNCH_NS)
        return self._time(batch.launch, released=not held)

    def sample(self, call: Callable[[], None]) -> Timing:
        """Time one call of the submission, behind the hold unless `hold_for` found that it waits for the device."""
        if not self._held:
            return self._time(call, released=True)
        with self._hold.watched():
            self._hold.close(self._enqueue_ns)
            return self._time(call, released=False)

    def hold_for(self, call: Callable[[], None]) -> HoldKind:
        """Find out how the stream can be held for this call, which has been warmed up."""
        started = time.perf_counter_ns()
        call()
        self._enqueue_ns = 2 * (time.perf_counter_ns() - started)
        torch.cuda.synchronize()
        self._held = not self._hold.would_block(call, self._enqueue_ns)
        return self._hold.kind if self._held else "none"

    def _time(self, work: Callable[[], None], *, released: bool) -> Timing:
        """Record, work, record, release the hold, synchronize the device."""
        stream = self._stream.cuda_stream
        begun = time.perf_counter_ns()
        check(driver.cuEventRecord(self._start, stream))
        work()
        check(driver.cuEventRecord(self._end, stream))
        if not released:
            begun = time.perf_counter_ns()
            self._hold.open()
        check(driver.cuCtxSynchronize())
        span_ns = time.perf_counter_ns() - begun
        return Timing(round(check(driver.cuEventElapsedTime(self._start, self._end)) * 1e6), span_ns)

    def capture(self, call: CallSet, sets: int) -> tuple[list[Any] | None, str]:
        """Capture every set's call as its own graph; (None, why) if the submission cannot be captured."""
        graphs: list[Any] = []
        pool = torch.cuda.graph_pool_handle()
        for k in range(sets):
            try:
                graph = self._captured(lambda k=k: call(k), pool)  # type: ignore[misc]
            except Exception as error:  # noqa: BLE001  # whatever the submission raises while it is captured
                torch.cuda.synchronize()
                return None, _told(error)
            raw = driver.CUgraph(graph.raw_cuda_graph())
            if k == 0 and (why := self._unfit(raw)):
                return None, why
            graphs.append((graph, raw))
        self._batches_held = self._launches_behind_the_hold(graphs)
        return graphs, ""

    def _allocate_from_scratch(self) -> None:
        """From here on this thread allocates every tensor in the scratch, if there is one, even long-lived ones."""
        if self._scratch is not None:
            self._pooling.enter_context(torch.cuda.use_mem_pool(self._scratch.pool))

    def _captured(self, call: Callable[[], None], pool: Any) -> Any:
        """The graph of a call, with its memory in a pool that nothing else may use meanwhile."""
        graph = torch.cuda.CUDAGraph(keep_graph=True)
        self._pooling.close()
        try:
            graph.capture_begin(pool=pool, capture_error_mode="thread_local")
            try:
                call()
            finally:
                graph.capture_end()
        except BaseException:
            if self._scratch is not None:
                self._scratch.renew(graph)
            raise
        finally:
            self._allocate_from_scratch()
        if self._scratch is not None:
            self._scratch.keep(graph)
        return graph

    def record(self, call: OneCall) -> CapturedCall:
        """Capture one call, and describe it."""
        if self._images is None or self._scratch is None:
            return CapturedCall(reason="CUPTI, which tells what the driver loads, is not available")
        from harness.runner.recorder import Recorder

        returned: list[Returned] = []
        try:
            is_new = self._scratch.allocated_from_now_on()
            graph = self._captured(lambda: returned.extend(_made(call, is_new)), self._scratch.pool.id)
            torch.cuda.synchronize()
            raw = driver.CUgraph(graph.raw_cuda_graph())
            if check(driver.cuGraphGetNodes(raw))[1] == 0:
                return CapturedCall(reason="the call puts no work on the stream that it is given")
            recorder = Recorder(self._images)
            file = recorder.record(raw, self._scratch.nbytes, returned)
        except Exception as error:  # noqa: BLE001  # whatever the submission raises while it is captured
            torch.cuda.synchronize()
            return CapturedCall(reason=_told(error))
        return CapturedCall(file, self._scratch.nbytes, "", recorder.note, self._scratch.copy_to)

    def _launches_behind_the_hold(self, graphs: list[Any]) -> bool:
        """Whether launching all graphs returns before any of them can start; tried on practice memory.

        On an H200 the driver queues 2000 children of a memset and a kernel in 10 µs, but enqueues those of cuDNN's
        attention one by one, waits before the 512th for some to end, and would wait for ever. Without the hold the time
        of such a batch is the same within 0.2 %.
        """
        batch = self.batch(graphs, lambda _: None, range(len(graphs)))
        with self._hold.watched():
            self._hold.close(_GRAPH_LAUNCH_NS)
            batch.launch()
        torch.cuda.synchronize()
        return not self._hold.broken

    def _unfit(self, graph: Any) -> str:
        """Why a captured call cannot be part of a batch: a graph that allocates memory cannot be a child of another."""
        if check(driver.cuGraphGetNodes(graph))[1] == 0:
            return "the call puts no work on the stream that it is given"
        try:
            ParentGraph([graph], self._stream.cuda_stream)
        except DeviceError as error:
            return f"the call cannot be part of a graph ({error})"
        return ""

    def batch(self, graphs: list[Any] | None, call: CallSet, order: Sequence[int]) -> AssembledBatch:
        check(driver.cuCtxResetPersistingL2Cache())  # lines that a submission made persisting would stay for every call
        if graphs is None:
            return PlainCalls(call, order)
        return ParentGraph([graphs[k][1] for k in order], self._stream.cuda_stream)


class ParentGraph:
    """A chain of child graphs, instantiated and uploaded: launching it runs none of the submission's host code."""

    holdable = True

    def __init__(self, children: Sequence[Any], stream: int) -> None:
        self._stream = stream
        graph = check(driver.cuGraphCreate(0))
        last = None
        if not children:
            # A null round launches a graph too, of one small memset, so that a launch is part of the overhead. An empty
            # graph would not do: on an H200 it takes 200 µs, where a graph with work in it takes 80.
            last = self._add_memset(graph)
        for child in children:
            before = [] if last is None else [last]
            last = check(driver.cuGraphAddChildGraphNode(graph, before or None, len(before), child))
        self._executable = check(driver.cuGraphInstantiate(graph, 0))
        check(driver.cuGraphDestroy(graph))
        check(driver.cuGraphUpload(self._executable, stream))
        torch.cuda.synchronize()

    def _add_memset(self, graph: Any) -> Any:
        self._scratch = torch.zeros(1, dtype=torch.int32, device="cuda")
        parameters = driver.CUDA_MEMSET_NODE_PARAMS()
        parameters.dst = self._scratch.data_ptr()
        parameters.elementSize, parameters.width, parameters.height = 4, 1, 1
        return check(driver.cuGraphAddMemsetNode(graph, None, 0, parameters, check(driver.cuCtxGetCurrent())))

    def launch(self) -> None:
        check(driver.cuGraphLaunch(self._executable, self._stream))

    def __del__(self) -> None:
        if hasattr(self, "_executable"):
            driver.cuGraphExecDestroy(self._executable)


def _made(call: OneCall, is_new: IsNew) -> list[Returned]:
    """Make a call; returns the results that it leaves in new memory."""
    if isinstance(call, ReturningCall):
        return call.leaving(is_new)
    call()
    return []


def _scratch() -> Scratch:
    from harness.runner.scratch import Scratch  # imported here so that only a runner that records pays for it

    return Scratch()


def _told(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
