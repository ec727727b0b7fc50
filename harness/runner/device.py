"""What the runner needs of a device: synchronizing, timing a batch, capturing graphs. Each kind has its own module."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from harness.runner.kernel import OneCall

HoldKind = Literal["memory", "spin", "none"]
CallSet = Callable[[int], None]  # calls the kernel on set k of the bound arenas


@dataclass(frozen=True)
class Timing:
    """The time of some work by the device's clock, and by the host's from releasing the stream until the device is
    idle.
    """

    event_ns: int
    span_ns: int


@dataclass(frozen=True)
class CapturedCall:
    """A captured call as the bytes of a file, and the size of its scratch; or empty, with the reason.

    `note`: what may make a replay fail.
    """

    file: bytes = b""
    scratch_bytes: int = 0
    reason: str = ""
    note: str = ""
    copy_scratch: Callable[[int], None] = lambda descriptor: None


class AssembledBatch(Protocol):
    """Drawn calls in a drawn order, ready to launch; `holdable` if launching runs none of the submission's code."""

    holdable: bool

    def launch(self) -> None: ...


class Device(Protocol):
    kind: Literal["cpu", "cuda"]

    def stream(self) -> int: ...
    def follow_default_stream(self) -> None: ...
    def allocator(self) -> tuple[int, int] | None: ...
    def synchronize(self) -> None: ...
    def healthy(self) -> bool: ...
    def evict(self) -> None: ...
    def time(self, batch: AssembledBatch) -> Timing: ...
    def sample(self, call: Callable[[], None]) -> Timing: ...
    def hold_for(self, call: Callable[[], None]) -> HoldKind: ...
    def capture(self, call: CallSet, sets: int) -> tuple[list[Any] | None, str]: ...
    def record(self, call: OneCall) -> CapturedCall: ...
    def batch(self, graphs: list[Any] | None, call: CallSet, order: Sequence[int]) -> AssembledBatch: ...


class PlainCalls:
    """The fallback: the submission's own code runs for each drawn call."""

    holdable = False

    def __init__(self, call: CallSet, order: Sequence[int]) -> None:
        self._call, self._order = call, order

    def launch(self) -> None:
        for k in self._order:
            self._call(k)
