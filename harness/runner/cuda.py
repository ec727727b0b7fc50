"""The GPU as a device of the runner: makes and captures calls on one stream. Untrusted."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

import torch
from cuda.bindings import driver

from harness.arena.mapping import check
from harness.recording.schema import Returned
from harness.runner.device import CapturedCall
from harness.runner.kernel import CallError, OneCall
from harness.runner.results import IsNew
from harness.runner.styles import ReturningCall

if TYPE_CHECKING:
    from harness.runner.images import LoadedImages
    from harness.runner.scratch import Scratch

_PER_THREAD = 2  # cudaStreamPerThread (driver_types.h)
# The runtime's errors when a wait for the device, or a launch on the legacy stream, has ended a capture: that of the
# call itself (906, 900), or of the next call (901).
_ENDED_CAPTURE = ("previous error during capture", "legacy stream depend", "not permitted when stream is capturing")
_UNJOINED = "unjoined work"  # error 904
_JOIN = "let `torch.cuda.current_stream()` wait for each stream that the call uses (`wait_stream`), before it returns"
_ON_OUR_STREAM = "launch on `torch.cuda.current_stream().cuda_stream`, or compile with --default-stream=per-thread"


class RunnerCuda:
    """Makes all calls of a submission on one stream, since the legacy default stream cannot be captured.

    The two streams wait for each other, so launches of a library on the legacy default stream are ordered with the
    calls, although they cannot be recorded.
    """

    kind: Literal["cpu", "cuda"] = "cuda"

    def __init__(self, images: LoadedImages | None = None) -> None:
        self._images = images
        torch.cuda.synchronize()  # creates the context
        waits = driver.CUstream_flags.CU_STREAM_DEFAULT.value
        self._make_calls_on(int(check(driver.cuStreamCreate(waits))))
        self._scratch: Scratch | None = None
        if images is not None:
            from harness.runner.scratch import Scratch  # only runners that record need it

            self._scratch = Scratch()
        self._pooling = contextlib.ExitStack()
        self._allocate_from_scratch()

    def _make_calls_on(self, stream: int) -> None:
        self._stream = torch.cuda.ExternalStream(stream)
        torch.cuda.set_stream(self._stream)

    def stream(self) -> int:
        stream: int = self._stream.cuda_stream
        return stream

    def follow_default_stream(self) -> None:
        """From now on make calls on this thread's default stream.

        Launches in compiled code often name no stream. If the code was compiled for the thread's default stream
        (`compiling`), these launches are then ordered with the calls, and recorded.
        """
        torch.cuda.synchronize()
        self._make_calls_on(_PER_THREAD)
        # Autograd's backward pass would run in another thread, which has another default stream.
        torch.autograd.set_multithreading_enabled(False)

    def allocator(self) -> tuple[int, int] | None:
        """Addresses of C functions that allocate and free recordable memory, as in `Scratch.functions`."""
        return self._scratch.functions if self._scratch is not None else None

    def synchronize(self) -> None:
        torch.cuda.synchronize()

    def healthy(self) -> bool:
        """Whether the context still works. After an illegal access every later call fails."""
        try:
            torch.cuda.synchronize()
        except RuntimeError:
            return False
        return True

    def _allocate_from_scratch(self) -> None:
        """From now on let this thread allocate all tensors, even long-lived ones, in scratch memory if there is any."""
        if self._scratch is not None:
            self._pooling.enter_context(torch.cuda.use_mem_pool(self._scratch.pool))

    def record(self, call: OneCall) -> CapturedCall:
        """Capture one call, and describe it.

        Raises:
            CallError: it leaves work on a stream that nobody waits for, so the work may not be done in time.
        """
        if self._images is None or self._scratch is None:
            return CapturedCall(reason="CUPTI, which reports what the driver loads, is not available")
        from harness.runner.recorder import GraphRecorder

        scratch, returned = self._scratch, list[Returned]()

        def called() -> None:
            scratch.measure_peak_from_now_on()
            returned.extend(_made(call, is_new))

        try:
            is_new = scratch.allocated_from_now_on()
            graph = self._captured(called, scratch)
            torch.cuda.synchronize()
            peak_bytes = scratch.peak_bytes
            raw = driver.CUgraph(graph.raw_cuda_graph())
            if check(driver.cuGraphGetNodes(raw))[1] == 0:
                return CapturedCall(reason=f"the call puts no work on the stream that it is given; {_ON_OUR_STREAM}")
            recorder = GraphRecorder(self._images)
            file = recorder.record(raw, scratch.nbytes, returned, peak_bytes)
        except Exception as error:  # noqa: BLE001  # the submission may raise anything while it is captured
            torch.cuda.synchronize()
            if _UNJOINED in str(error):
                raise CallError(f"leaves work on a stream that nobody waits for: {_JOIN}") from None
            return CapturedCall(reason=_reason(error))
        return CapturedCall(file, scratch.nbytes, note=recorder.note, copy_scratch=scratch.copy_to)

    def _captured(self, call: Callable[[], None], scratch: Scratch) -> Any:
        """Capture the graph of a call. Its memory is in the scratch, which nothing else may use meanwhile."""
        graph = torch.cuda.CUDAGraph(keep_graph=True)
        pool: Any = scratch.pool.id
        self._pooling.close()
        try:
            graph.capture_begin(pool=pool, capture_error_mode="thread_local")
            try:
                call()
            finally:
                graph.capture_end()
        except BaseException:
            scratch.renew(graph)
            raise
        finally:
            self._allocate_from_scratch()
        scratch.keep(graph)
        return graph


def _made(call: OneCall, is_new: IsNew) -> list[Returned]:
    """Make a call; returns those of its results that stay in new memory."""
    if isinstance(call, ReturningCall):
        return call.leaving(is_new)
    call()
    return []


def _reason(error: Exception) -> str:
    if any(text in str(error) for text in _ENDED_CAPTURE):
        return f"the call waits for the device, or launches on the legacy default stream: {_ON_OUR_STREAM}"
    return f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
