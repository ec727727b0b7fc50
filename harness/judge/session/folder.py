"""The private folder of one sandbox, which contains its socket. Called by `Session`; trusted."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import socket
import tempfile
import time
from pathlib import Path

from harness.errors import SandboxError

_PREFIX = "kernelmark-session-"
_FRESH_S = 10.0  # a new folder may not be locked yet


def make() -> tuple[Path, int]:
    """Make a private folder, and a lock on it that lasts as long as this process.

    First remove the folders of killed judges, which no process locks any more.
    """
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):
            lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                if os.fstat(lock).st_uid == os.getuid() and time.time() - os.fstat(lock).st_mtime > _FRESH_S:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(folder)
            finally:
                os.close(lock)
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
    lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    return folder, lock


def listen(listener: socket.socket, folder: Path) -> Path:
    """Bind a socket in the folder, to which the program in the sandbox connects.

    Returns:
        The socket's path.

    Raises:
        SandboxError: there can be no socket, for example since its path is too long.
    """
    path = folder / "socket"
    try:
        listener.bind(str(path))
    except OSError as error:
        why = f"{path} cannot be a socket ({error.strerror or error})"
        raise SandboxError(why, "set TMPDIR to another folder, such as /tmp") from None
    path.chmod(0o666)  # that program has another uid; the folder around it is private
    listener.listen(1)
    return path
