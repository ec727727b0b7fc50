"""Limits memory by a control group, and counts the processes that the kernel killed for exceeding it. Trusted.

`bwrap` creates a control group for each sandbox, if this process may; `docker` reads the one that its daemon created.
Versions 1 and 2 differ only in the names of the files. If no group can be created (no permission, or version 2 without
delegation), `create` returns None, and the provider polls instead.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import time
from pathlib import Path

_FILESYSTEM = Path("/sys/fs/cgroup")
# The limit for buffers of TCP and UDP. Version 1 does not count them as memory, and the kernel has only one limit for
# the whole machine (net.ipv4.tcp_mem). Version 2 counts them.
_SOCKET_BYTES = 16 << 20


class MemoryGroup:
    """A control group with a hard memory limit; tmpfs pages count."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    @classmethod
    def create(cls, limit_bytes: int) -> MemoryGroup | None:
        """Create a group below this process's own, or below the nearest ancestor where that is allowed."""
        for parent in _candidates():
            _sweep(parent)
            directory = parent / f"kernelmark-{os.getpid()}-{secrets.token_hex(8)}"
            try:
                directory.mkdir()
            except OSError:
                continue
            with contextlib.suppress(OSError):
                if (directory / "memory.max").exists():
                    (directory / "memory.max").write_text(str(limit_bytes))
                    (directory / "memory.swap.max").write_text("0")
                    return cls(directory)
                if (directory / "memory.limit_in_bytes").exists():
                    (directory / "memory.limit_in_bytes").write_text(str(limit_bytes))
                    with contextlib.suppress(OSError):  # absent if the kernel does not account for swap
                        (directory / "memory.memsw.limit_in_bytes").write_text(str(limit_bytes))
                    limit_sockets(directory)
                    return cls(directory)
            directory.rmdir()
        return None

    @property
    def entrance(self) -> Path:
        """The file to which a process writes its id to enter the group."""
        return self._directory / "cgroup.procs"

    def kills(self) -> int:
        """How many processes of the group the kernel has killed for lack of memory."""
        return kills(self._directory)

    def remove(self, within_s: float) -> bool:
        """Remove the empty group, for which the kernel may need a moment. Returns whether it is gone."""
        deadline = time.monotonic() + within_s
        while self._directory.exists():
            with contextlib.suppress(OSError):
                self._directory.rmdir()
                break
            if time.monotonic() > deadline:
                return False
            time.sleep(0.002)
        return True


def group_of(process: int | str) -> Path | None:
    """The group that accounts for a process's memory, as seen from here; None if it cannot be determined."""
    members = Path(f"/proc/{process}/cgroup")
    for line in members.read_text().splitlines() if members.exists() else ():
        _, controllers, at = line.split(":", 2)
        if "memory" in controllers.split(","):
            return _FILESYSTEM / "memory" / at.strip("/")
        if not controllers and (_FILESYSTEM / "cgroup.controllers").exists():
            return _FILESYSTEM / at.strip("/")
    return None


def limit_sockets(group: Path) -> None:
    """Limit the buffers of TCP and UDP in a version 1 group, if this process may."""
    with contextlib.suppress(OSError):  # the file is missing in some kernels, and not every user may write it
        (group / "memory.kmem.tcp.limit_in_bytes").write_text(str(_SOCKET_BYTES))


def kills(group: Path) -> int:
    """How many processes of a group the kernel has killed for lack of memory; 0 if there is no such group."""
    for name in ("memory.events", "memory.oom_control"):
        with contextlib.suppress(OSError):
            fields = dict(line.split() for line in (group / name).read_text().splitlines())
            return int(fields.get("oom_kill", 0))
    return 0


def _candidates() -> list[Path]:
    own = group_of("self")
    if own is None:
        return []
    if own.is_relative_to(_FILESYSTEM / "memory"):
        return [own, _FILESYSTEM / "memory"]
    return [group for group in (own, *own.parents) if group.is_relative_to(_FILESYSTEM)]


def _sweep(parent: Path) -> None:
    """Remove empty groups left by killed judges."""
    for directory in parent.glob("kernelmark-*-*"):
        if not Path("/proc", directory.name.split("-")[1]).exists():
            with contextlib.suppress(OSError):
                directory.rmdir()
