"""Calls for a tool that watches the device: compute-sanitizer, or Nsight Compute.

Shared memory has no end that such a tool knows, and was never written as far as it can tell. So here the arenas are
host memory, and each tensor is copied into an allocation of its own on the device. Nothing is copied back: the judge
asks for no outputs. Runs in the runner's process, untrusted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from harness.runner.calls import Calls


class WatchedCalls(Calls):
    """As `Calls`, over windows of host memory."""

    def call_plainly(self, sets: Sequence[int]) -> None:
        """Call the kernel twice a set: once to compile and tune, then in a profiler's sight, on fresh copies."""
        for k in sets:
            self._call_on_copies(k)
            profiler = torch.cuda.cudart() if self._device.kind == "cuda" else None
            self._call_on_copies(k, profiler)

    def _call_on_copies(self, k: int, profiler: Any = None) -> None:
        copies = [self._copied(argument) for argument in self._arguments[k]]
        self._device.synchronize()
        if profiler is not None:
            profiler.cudaProfilerStart()
        self._kernel(self._bind.symbol, copies, self._scalars, self._bind.sizes)
        self._device.synchronize()
        if profiler is not None:
            profiler.cudaProfilerStop()

    def _copied(self, argument: torch.Tensor | list[torch.Tensor]) -> Any:
        if isinstance(argument, list):
            return [self._copied(each) for each in argument]
        return argument.clone().to(self._device.kind)
