"""Measures and ends process trees, by what /proc shows. Called by providers; trusted.

/proc changes while it is read, so a process that is gone is skipped. Without /proc (not Linux) a tree is empty.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")
_TICK_NS = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_PAUSE_S, _MAX_PAUSE_S = 0.002, 0.2
_LOOKS, _EMPTY = 500, 2  # at a process in `exec`; at one that has no environment


@dataclass(frozen=True)
class Usage:
    """The usage of a process tree: private memory (arenas and libraries are shared), and processes plus threads."""

    private_bytes: int
    tasks: int


def tree(roots: set[int]) -> set[int]:
    """The live processes in `roots`, and all their descendants."""
    pids: set[int] = set()
    waiting = list(roots)
    while waiting:
        pid = waiting.pop()
        if pid in pids:
            continue
        try:
            tasks = os.listdir(_PROC / str(pid) / "task")  # noqa: PTH208  (names only; a Path for each is too slow)
        except OSError:
            continue
        pids.add(pid)
        for task in tasks:
            with contextlib.suppress(OSError):
                waiting.extend(map(int, _read(f"{pid}/task/{task}/children").split()))
    return pids


def usage(pids: set[int]) -> Usage:
    """The sum of the usage of processes."""
    private_bytes = tasks = 0
    for pid in pids:
        with contextlib.suppress(OSError):
            resident, shared = _read(f"{pid}/statm").split()[1:3]
            private_bytes += (int(resident) - int(shared)) * _PAGE_BYTES
            tasks += len(os.listdir(_PROC / str(pid) / "task"))  # noqa: PTH208
    return Usage(private_bytes, tasks)


def cpu_ns(pids: set[int]) -> int:
    """The CPU time of processes, including children that have ended and were waited for."""
    ticks = 0
    for pid in pids:
        with contextlib.suppress(OSError):
            # The command's name, in parentheses, may contain anything, so fields count from the last parenthesis.
            ticks += sum(map(int, _read(f"{pid}/stat").rpartition(")")[2].split()[11:15]))
    return ticks * _TICK_NS


def marked(mark: str, session: int) -> set[int]:
    """All processes with `mark` in their initial environment, or of the session. Scans all of /proc."""
    pids: set[int] = set()
    needle = mark.encode()
    for name in os.listdir(_PROC) if _PROC.is_dir() else ():  # noqa: PTH208
        if not name.isdecimal() or int(name) == os.getpid():
            continue
        with contextlib.suppress(OSError):
            # As in `cpu_ns`.
            state, _, _, own_session = _read(f"{name}/stat").rpartition(")")[2].split()[:4]
            if state not in "ZX" and (int(own_session) == session or needle in _environment(name)):
                pids.add(int(name))
    return pids


def _environment(name: str) -> bytes:
    """The initial environment of a process.

    While a process is in `exec` the kernel shows none, and 0 for its place in memory; for less than a microsecond the
    place has no length. Such a process is asked again, so that none escapes by beginning programs all the time.
    """
    empty = 0
    for _ in range(_LOOKS):  # not for a time: this process, too, may have to wait for a processor
        if environment := (_PROC / name / "environ").read_bytes():
            return environment
        begins, ends = _read(f"{name}/stat").rpartition(")")[2].split()[47:49]
        empty += begins == ends != "0"
        # A thread of the kernel, or a process that ends, has no memory.
        if empty == _EMPTY or _read(f"{name}/statm").startswith("0 "):
            break
        time.sleep(_PAUSE_S)
    return b""


def kill(pids: set[int]) -> None:
    """Send SIGKILL to processes; those that are gone, or now belong to another user, are skipped."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)


def kill_marked(mark: str, session: int, *, within_s: float) -> set[int]:
    """Kill all processes that `marked` finds, and their descendants, until there are none, so that fast forking does
    not help.

    Returns the processes that are still alive when the time is up.
    """
    deadline = time.monotonic() + within_s
    killed: set[int] = set()
    pause_s = _PAUSE_S
    while (living := marked(mark, session)) and time.monotonic() < deadline:
        doomed = tree(living)
        # They are stopped first, since a process could otherwise always fork between the scan and the kill.
        for pid in doomed:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGSTOP)
        kill(doomed | tree(doomed))
        # Scan often while they fork, and less and less often while the kernel is slow to end them.
        pause_s = _PAUSE_S if doomed - killed else min(2 * pause_s, _MAX_PAUSE_S)
        killed |= doomed
        time.sleep(pause_s)
    return living


def _read(name: str) -> str:
    with open(f"/proc/{name}", encoding="utf-8", errors="replace") as file:  # noqa: PTH123  (hot: 2 µs less a file)
        return file.read()
