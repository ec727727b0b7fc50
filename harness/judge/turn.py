"""One timed grading at a time on a GPU, and one on a machine's CPU. Trusted.

Two gradings on one device slow each other by a random amount, and on a GPU each would take the other's memory for the
submission's. So whoever comes second waits, whatever process it is in: people who train models grade from many at once.
The lock goes with the process that holds it, so a judge that was killed keeps nobody waiting. Judges meet where they
share `/tmp`: those in containers of their own do not, and a CPU that they share is a doubt (`neighbours`).
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
    """Hold CUDA's device 0, or all of the CPU; `waiting` is called once if another grading has it."""
    which = f"gpu-{gpu.address_in_use() or 'unknown'}" if device == "cuda" else "cpu"
    lock = _open(_DIRECTORY / f"kernelmark-{which}.lock")
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
        os.fchmod(made, 0o444)  # whatever the umask of who comes first
        os.close(made)
    return os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
