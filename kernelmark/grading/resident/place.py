"""The socket on which a resident worker listens: one for each project, in a folder only of its user. Trusted."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import select
import socket
import stat
import struct
import tempfile
from pathlib import Path

from harness.files.outside import real

KEY_BYTES = 64
_CONNECT_S = 5.0


def socket_of(root: Path) -> Path | None:
    """The socket of a project's worker, even if no worker listens; None if other users could enter the folder."""
    folder = Path(tempfile.gettempdir(), f"kernelmark-resident-{os.geteuid()}")
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
    except OSError:
        return None
    private = stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o077
    return folder / f"{hashlib.sha256(os.fsencode(real(root))).hexdigest()[:16]}.sock" if private else None


def peer(connection: socket.socket) -> tuple[int, int]:
    """The process id and user id of the other end of a connection."""
    pid, uid, _ = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    return pid, uid


def connect(path: Path) -> socket.socket | None:
    """A connection to the worker that listens there; None if no worker of this user does."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(_CONNECT_S)
    with contextlib.suppress(OSError):
        connection.connect(str(path))
        if peer(connection)[1] == os.geteuid():
            return connection
    connection.close()
    return None


def listen(path: Path) -> socket.socket | None:
    """Listen there; None if another worker already does."""
    lock = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if (other := connect(path)) is not None:
            other.close()
            return None
        path.unlink(missing_ok=True)  # left behind by a worker that was killed
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listener.bind(str(path))
        listener.listen()
        return listener
    finally:
        os.close(lock)


def waiting(path: Path, *, end: bool = False) -> int | None:
    """The process id of the worker that listens there; None if there is none. With `end`, end it and wait for that."""
    if (connection := connect(path)) is None:
        return None
    with connection:
        pid, _ = peer(connection)
        with contextlib.suppress(OSError):  # it has just ended
            process = os.pidfd_open(pid)
            if end:
                connection.sendall(b"end".ljust(KEY_BYTES))  # differs from every key
                select.select([process], [], [])
            os.close(process)
    return pid
