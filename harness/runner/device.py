"""What the runner does differently on a CPU and on a GPU: waiting, the clock of a batch, and captured graphs."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

import torch

if TYPE_CHECKING:
    from harness.runner.images import LoadedImages

HoldKind = Literal["memory", "spin", "none"]
CallSet = Callable[[int], None]  # calls the kernel on set k of the bound arenas


@dataclass(frozen=True)
class Timing:
    """One piece of work by the device's clock, and by the host's from the stream's release to the device's end."""

    event_ns: int
    span_ns: int


@dataclass(frozen=True)
class Record:
    """A captured call as the bytes of a file, and how much scratch it has; or nothing, and why there is none."""

    file: bytes = b""
    scratch_bytes: int = 0
    reason: str = ""
    copy_scratch: Callable[[int], None] = lambda descriptor: None


class Batch(Protocol):
    """Drawn calls in a drawn order, ready to be launched; `holdable` if launching runs nothing of the submission."""

    holdable: bool

    def launch(self) -> None: ...


class Device(Protocol):
    kind: Literal["cpu", "cuda"]

    def stream(self) -> int: ...
    def allocator(self) -> tuple[int, int] | None: ...
    def synchronize(self) -> None: ...
    def healthy(self) -> bool: ...
    def evict(self) -> None: ...
    def time(self, batch: Batch) -> Timing: ...
    def sample(self, call: Callable[[], None]) -> Timing: ...
    def hold_for(self, call: Callable[[], None]) -> HoldKind: ...
    def capture(self, call: CallSet, sets: int) -> tuple[list[Any] | None, str]: ...
    def record(self, call: Callable[[], None]) -> Record: ...
    def batch(self, graphs: list[Any] | None, call: CallSet, order: Sequence[int]) -> Batch: ...


class PlainCalls:
    """The fallback: the submission's own code runs for each drawn call."""

    holdable = False

    def __init__(self, call: CallSet, order: Sequence[int]) -> None:
        self._call, self._order = call, order

    def launch(self) -> None:
        for k in self._order:
            self._call(k)


class Cpu:
    """The CPU: calls are synchronous, the clock is `perf_counter_ns`, nothing can be captured."""

    kind: Literal["cpu", "cuda"] = "cpu"
    _CACHE_BYTES = 64 << 20  # larger than the last-level caches that a desktop or one socket's share has

    def __init__(self) -> None:
        self._cache = torch.ones(self._CACHE_BYTES // 8, dtype=torch.int64)

    def stream(self) -> int:
        return 0

    def allocator(self) -> tuple[int, int] | None:
        return None

    def synchronize(self) -> None:
        pass

    def healthy(self) -> bool:
        return True

    def evict(self) -> None:
        self._cache.sum()  # by reading: written lines would have to be flushed on the kernel's time

    def time(self, batch: Batch) -> Timing:
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

    def record(self, call: Callable[[], None]) -> Record:
        return Record(reason="a CPU has no graphs")

    def batch(self, graphs: list[Any] | None, call: CallSet, order: Sequence[int]) -> Batch:
        return PlainCalls(call, order)


def open_device(kind: str, images: LoadedImages | None = None) -> Device:
    """Make the device's context; on CUDA this takes about 0.3 s. With `images` its calls can be recorded."""
    if kind == "cpu":
        return Cpu()
    from harness.runner.cuda import Cuda

    return Cuda(images)
