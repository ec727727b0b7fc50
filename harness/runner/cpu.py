"""The CPU as a device: calls are synchronous, and none can be captured."""

from __future__ import annotations

from typing import Literal

from harness.runner.device import CapturedCall
from harness.runner.kernel import OneCall


class Cpu:
    kind: Literal["cpu", "cuda"] = "cpu"

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

    def record(self, call: OneCall) -> CapturedCall:
        return CapturedCall(reason="a CPU has no graphs")
