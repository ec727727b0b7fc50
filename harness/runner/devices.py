"""Opens the runner's device: the CPU, which is defined here, or the GPU (`cuda`). Untrusted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from harness.runner.device import CapturedCall, RunnerDevice
from harness.runner.kernel import OneCall

if TYPE_CHECKING:
    from harness.runner.images import LoadedImages


class RunnerCpu:
    """The CPU as a device: calls are synchronous, and none can be captured."""

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


def open_device(kind: str, images: LoadedImages | None = None) -> RunnerDevice:
    """Open the device; on CUDA this creates the context in about 0.3 s. With `images` its calls can be recorded."""
    if kind == "cpu":
        return RunnerCpu()
    from harness.runner.cuda import RunnerCuda

    return RunnerCuda(images)
