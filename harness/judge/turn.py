"""One timed grading at a time on a GPU. Trusted.

Two gradings on one device slow each other by a random amount, and each would take the other's memory for the
submission's. So whoever comes second waits, whatever process it is in: people who train models grade from many at once.
The lock goes with the process that holds it, so a judge that was killed keeps nobody waiting.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Callable, Iterator
from pathlib import Path

from harness.sandbox import gpu
from harness.verdict import DeviceKind

_DIRECTORY = Path("/tmp")  # not TMPDIR: judges of different users must meet


@contextlib.contextmanager
def take_turn(device: DeviceKind, waiting: Callable[[], None]) -> Iterator[None]:
    """Hold CUDA's device 0; `waiting` is called once if another grading has it. Nobody waits for a CPU."""
    if device != "cuda":
        yield
        return
    lock = _open(_DIRECTORY / f"kernelmark-gpu-{gpu.address_in_use() or 'unknown'}.lock")
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            waiting()
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def _open(path: Path) -> int:
    """The lock file, which anybody may lock and nobody needs to write."""
    with contextlib.suppress(FileExistsError):
        made = os.open(path, os.O_RDONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o444)
        os.close(made)
    return os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
