"""The interface of a device in the runner: it synchronizes, and records calls. Untrusted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol

from harness.runner.kernel import OneCall


@dataclass(frozen=True)
class CapturedCall:
    """A captured call, as the bytes of a recording file; empty if it could not be captured, with the `reason`.

    `note`: what may make a replay fail. `host_ns`: the host's time to launch the call.
    """

    file: bytes = b""
    scratch_bytes: int = 0
    reason: str = ""
    note: str = ""
    host_ns: int = 0
    copy_scratch: Callable[[int], None] = lambda descriptor: None


class RunnerDevice(Protocol):
    kind: Literal["cpu", "cuda"]

    def stream(self) -> int: ...
    def follow_default_stream(self) -> None: ...
    def allocator(self) -> tuple[int, int] | None: ...
    def synchronize(self) -> None: ...
    def healthy(self) -> bool: ...
    def record(self, call: OneCall) -> CapturedCall: ...
