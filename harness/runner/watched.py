"""Makes calls for a tool that watches the device: compute-sanitizer or Nsight Compute.

Such a tool does not know where the tensors in an arena end, and considers an arena never written. So here the arenas
are host memory, and every tensor is copied into its own allocation on the device. Nothing is copied back, since the
judge does not need the outputs. Runs in the runner's process, untrusted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from harness.arena.shapes import copied
from harness.runner.calls import Calls


class WatchedCalls(Calls):
    """`Calls` over windows of host memory."""

    def prepare(self) -> None:
        """Make the tensors of every call in host memory."""
        self.arguments = [self._arguments_of(k) for k in range(self._bind.sets)]
        self._prepare = self._kernel.bind(self._bind, self._declared)

    def call_plainly(self, sets: Sequence[int]) -> None:
        """Make each call twice, on new copies: first to compile and tune, then profiled."""
        for k in sets:
            self._call_on_copies(k)
            profiler = torch.cuda.cudart() if self._device.kind == "cuda" else None
            self._call_on_copies(k, profiler)

    def _call_on_copies(self, k: int, profiler: Any = None) -> None:
        call = self._prepare([self._copied(argument) for argument in self.arguments[k]])
        self._device.synchronize()
        if profiler is not None:
            profiler.cudaProfilerStart()
        call()
        self._device.synchronize()
        if profiler is not None:
            profiler.cudaProfilerStop()

    def _copied(self, argument: torch.Tensor | list[torch.Tensor] | None) -> Any:
        if isinstance(argument, list):
            return [self._copied(tensor) for tensor in argument]
        return None if argument is None else copied(argument, self._device.kind)
