"""The GPU as the runner sees it: one stream, events around a launch, and per-call graphs under one parent graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import torch
from cuda.bindings import driver

from harness.arena.vmm import check
from harness.runner.device import Batch, CallSet, PlainCalls


class Cuda:
    """All calls of a submission are made on one side stream: the legacy default stream cannot be captured."""

    kind: Literal["cpu", "cuda"] = "cuda"

    def __init__(self) -> None:
        self._stream = torch.cuda.Stream()
        torch.cuda.set_stream(self._stream)
        properties = torch.cuda.get_device_properties(self._stream.device)
        self._cache = torch.ones(3 * properties.L2_cache_size // 4, dtype=torch.int32, device="cuda")
        self._sum = torch.empty((), dtype=torch.int64, device="cuda")
        _make_triton_ready()
        self._cycles_per_ns = 2.0  # an upper guess of the SM clock; the hold may be too long, never too short

    def stream(self) -> int:
        stream: int = self._stream.cuda_stream
        return stream

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
        """Replace what L2 holds by reading: written lines would be flushed on the kernel's time."""
        torch.sum(self._cache, dim=0, out=self._sum)

    def time(self, work: Callable[[], None], hold_ns: int = 0) -> int:
        """Time `work` with events on the stream, held for `hold_ns` so that its launches queue up behind the first."""
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        if hold_ns:
            torch.cuda._sleep(int(hold_ns * self._cycles_per_ns))
        start.record(self._stream)
        work()
        end.record(self._stream)
        torch.cuda.synchronize()
        elapsed_ms: float = start.elapsed_time(end)
        return round(elapsed_ms * 1e6)

    def capture(self, call: CallSet, sets: int) -> tuple[list[Any] | None, str]:
        """Capture every set's call as a graph of its own; (None, why) where the submission cannot be captured."""
        graphs: list[Any] = []
        pool = torch.cuda.graph_pool_handle()
        for k in range(sets):
            graph = torch.cuda.CUDAGraph(keep_graph=True)
            try:
                graph.capture_begin(pool=pool, capture_error_mode="thread_local")
                try:
                    call(k)
                finally:
                    graph.capture_end()
            except Exception as error:  # noqa: BLE001  # whatever the submission raises while it is captured
                torch.cuda.synchronize()
                return None, f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
            raw = driver.CUgraph(graph.raw_cuda_graph())
            if k == 0 and check(driver.cuGraphGetNodes(raw))[1] == 0:
                return None, "the call puts no work on the stream that it is given"
            graphs.append((graph, raw))
        return graphs, ""

    def batch(self, graphs: list[Any] | None, call: CallSet, order: Sequence[int]) -> Batch:
        if graphs is None:
            return PlainCalls(call, order)
        return ParentGraph([graphs[k][1] for k in order], self._stream.cuda_stream)


class ParentGraph:
    """Child graphs in a chain, instantiated and uploaded: launching it runs none of the submission's host code."""

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


def _make_triton_ready() -> None:
    """Let Triton compile its helper library now (0.7 s with gcc), while the judge imports torch."""
    try:
        from triton.runtime import driver as triton_driver

        triton_driver.active.get_current_device()
    except Exception:  # noqa: BLE001  # no Triton, or none that works here: the submission that needs it will hear of it
        return
