"""The CPU as a device: the host's clock, and no graphs."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, Literal

import torch

from harness.runner.device import AssembledBatch, CallSet, CapturedCall, HoldKind, PlainCalls, Timing
from harness.runner.kernel import OneCall


class Cpu:
    """The CPU: calls are synchronous, the clock is `perf_counter_ns`, nothing can be captured."""

    kind: Literal["cpu", "cuda"] = "cpu"
    _CACHE_BYTES = 64 << 20  # larger than the last-level cache that one core usually has to itself

    def __init__(self) -> None:
        self._cache = torch.ones(self._CACHE_BYTES // 8, dtype=torch.int64)

    def stream(self) -> int:
        return 0

    def follow_default_stream(self) -> None:
        pass

    def allocator(self) -> tuple[int, int] | None:
        return None

    def synchronize(self) -> None:
        pass

    def healthy(self) -> bool:
        return True

    def evict(self) -> None:
        self._cache.sum()  # by reading: written lines would be flushed during the kernel's time

    def time(self, batch: AssembledBatch) -> Timing:
        return self.sample(batch.launch)

    def sample(self, call: Callable[[], None]) -> Timing:
        start = time.perf_counter_ns()
        call()
        elapsed_ns = time.perf_counter_ns() - start
        return Timing(elapsed_ns, elapsed_ns)

    def hold_for(self, call: Callable[[], None]) -> HoldKind:
        return "none"

    def capture(self, call: CallSet, sets: int) -> tuple[list[Any] | None, str]:
        return None, "a CPU has no graphs"

    def record(self, call: OneCall) -> CapturedCall:
        return CapturedCall(reason="a CPU has no graphs")

    def batch(self, graphs: list[Any] | None, call: CallSet, order: Sequence[int]) -> AssembledBatch:
        return PlainCalls(call, order)
