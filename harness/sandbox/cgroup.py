"""Limits memory by a control group, and tells whether the kernel killed a process for exceeding the limit. Trusted.

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

from harness.errors import SandboxError

_FILESYSTEM = Path("/sys/fs/cgroup")
# The limit for buffers of TCP and UDP. Version 1 does not count them as memory, and the kernel has only one limit for
# the whole machine (net.ipv4.tcp_mem). Version 2 counts them.
_SOCKET_BYTES = 16 << 20
_REACHED = 0.9  # the part of its limit that a group has used when a request, perhaps of a huge page, is too large


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

    def exceeded(self) -> bool:
        """Whether the group was too small for its processes; raises as the function of this name."""
        return exceeded(self._directory)

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


def exceeded(group: Path) -> bool:
    """Whether the kernel has killed a process of a group since the group had reached its limit; False if it is gone.

    Raises:
        SandboxError: the kernel killed one while the group was below its limit, since the whole machine, or a group
            above this one, had no memory left. No submission is to blame for that.
    """
    if _count(group, "memory.events", "oom_kill"):
        reached = _count(group, "memory.events", "oom") > 0
    elif _count(group, "memory.oom_control", "oom_kill"):  # version 1, whose `failcnt` stays 0 in Linux 6.18
        most = max(_count(group, f"memory.{kind}max_usage_in_bytes") for kind in ("", "memsw."))
        reached = most >= _count(group, "memory.limit_in_bytes") * _REACHED
    else:
        return False
    if not reached:
        what = "the kernel ended a process because this machine, or what kernelmark may use of it, had no memory left"
        raise SandboxError(what, "give it more memory, or grade fewer submissions at a time")
    return True


def _count(group: Path, file: str, field: str | None = None) -> int:
    """A number in a file of a group, or a field of it; 0 if there is no such file or field."""
    with contextlib.suppress(OSError):
        content = (group / file).read_text()
        if field is None:
            return int(content)
        return int(dict(line.split() for line in content.splitlines()).get(field, 0))
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
