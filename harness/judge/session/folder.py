"""The private folder of one session, which holds its socket. Called by `Session`; trusted."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
import time
from pathlib import Path

_PREFIX = "kernelmark-session-"
_FRESH_S = 10.0  # a folder is locked a moment after it is made


def make() -> tuple[Path, int]:
    """Make a private folder, and a lock on it that lasts as long as this process.

    First removes folders that killed judges left behind, which nobody holds a lock on any more.
    """
    for left in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):
            lock = os.open(left, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                if os.fstat(lock).st_uid == os.getuid() and time.time() - os.fstat(lock).st_mtime > _FRESH_S:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(left)
            finally:
                os.close(lock)
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
    lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    return folder, lock
