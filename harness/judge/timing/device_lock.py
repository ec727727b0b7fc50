"""Locks that let one grading at a time be timed on a GPU, and one on a machine's CPU. Trusted.

Two gradings on one device slow each other by a random amount, and on a GPU each would count the other's memory as its
submission's. So the second one waits. The locks work across processes, since people who train models grade from many
processes. Replayed calls are timed last: the earlier stages of such a grading share the GPU, and wait while anything is
timed. On a CPU a grading waits only before its timing, so that a syntax error is reported at once. The kernel releases
the lock of a killed judge. Judges see each other's locks if they share `/tmp`; judges in separate containers do not,
and then other load on the CPU becomes a doubt (`neighbours`).

Exclusive holders are served in the order of their arrival, and before all shared holders, which then begin together. In
plain order of arrival a shared holder would get in between two exclusive ones, and the second would wait for its tests.
So there are three locks. An exclusive holder shares the *gate* from its arrival until it is done, and waits in the
*queue* for the device. A shared holder must hold the gate exclusively for a moment.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Callable, Iterator
from pathlib import Path

from harness.device import DEVICES
from harness.verdict import DeviceKind

_DIRECTORY = Path("/tmp")  # not TMPDIR: judges of different users must share it
_GATE, _QUEUE, _LOCK = "kernelmark-{}-gate.lock", "kernelmark-{}-queue.lock", "kernelmark-{}.lock"


@contextlib.contextmanager
def lock_alone(device: DeviceKind, waiting: Callable[[], None]) -> Iterator[None]:
    """Hold CUDA device 0, or the whole CPU, exclusively; `waiting` is called once if this has to wait."""
    with _locked(device, fcntl.LOCK_EX, waiting):
        yield


@contextlib.contextmanager
def lock_shared(device: DeviceKind, waiting: Callable[[], None]) -> Iterator[None]:
    """Share the device with gradings that do not time anything; waits while another grading is timed."""
    with _locked(device, fcntl.LOCK_SH, waiting):
        yield


@contextlib.contextmanager
def lock_at_once(device: DeviceKind) -> Iterator[bool]:
    """Hold the device like `lock_alone`, but without waiting; yields whether it is held."""

    def waiting() -> None:
        raise _Busy

    with contextlib.ExitStack() as held:
        try:
            held.enter_context(_locked(device, fcntl.LOCK_EX, waiting))
            free = True
        except _Busy:
            free = False
        yield free


def waiting_before(device: DeviceKind) -> int:
    """How many gradings of other processes are in the queue for the device; 0 if the system does not list its locks."""
    with contextlib.suppress(OSError):
        file = (_DIRECTORY / _QUEUE.format(DEVICES[device].lock_name())).stat().st_ino
        entries = [line.split() for line in Path("/proc/locks").read_text().splitlines()]
        # A line of a process that waits: 7: -> FLOCK  ADVISORY  WRITE 31373 fe:00:3032134 0 EOF
        queued = [words[-4] for words in entries if "FLOCK" in words and words[-3].endswith(f":{file}")]
        return 0 if str(os.getpid()) in queued else len(queued)
    return 0


class _Busy(Exception):
    """Another grading holds the device, or waits for it."""


@contextlib.contextmanager
def _locked(device: DeviceKind, mode: int, waiting: Callable[[], None]) -> Iterator[None]:
    name = DEVICES[device].lock_name()
    # The files are opened for each use, so that threads of one process wait for each other as processes do.
    gate, queue, lock = (_open(_DIRECTORY / pattern.format(name)) for pattern in (_GATE, _QUEUE, _LOCK))
    try:
        if mode == fcntl.LOCK_EX:
            waiting = _lock(gate, fcntl.LOCK_SH, waiting)
            _lock(lock, mode, _lock(queue, mode, waiting))
            fcntl.flock(queue, fcntl.LOCK_UN)
        else:
            _lock(lock, mode, _lock(gate, fcntl.LOCK_EX, waiting))
            fcntl.flock(gate, fcntl.LOCK_UN)
        yield
    finally:
        for file in (lock, queue, gate):
            fcntl.flock(file, fcntl.LOCK_UN)  # a process that was forked meanwhile holds it, too
            os.close(file)


def _silent() -> None:
    pass


def _lock(lock: int, mode: int, waiting: Callable[[], None]) -> Callable[[], None]:
    """Wait for a lock; returns the `waiting` callback for the next lock, so that it is called only once."""
    try:
        fcntl.flock(lock, mode | fcntl.LOCK_NB)
    except BlockingIOError:
        waiting()
        fcntl.flock(lock, mode)
        return _silent
    return waiting


def _open(path: Path) -> int:
    """Open a lock file, which any user may lock and no user needs to write."""
    with contextlib.suppress(FileExistsError):
        made = os.open(path, os.O_RDONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o444)
        os.fchmod(made, 0o444)  # independent of the umask
        os.close(made)
    return os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
