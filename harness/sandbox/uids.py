"""User ids, each for one sandbox at a time, because the kernel counts many limits per user id.

Called by the providers that isolate. Trusted. Processes, pending signals, message queue bytes, epoll watches and pipe
buffers are counted per user: two sandboxes with the same user could use up each other's.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from typing import Any

from harness.sandbox import inside

HIGH = range(60_000_000, 60_100_000)
# In a user namespace of a Docker daemon's there are usually 65536.
_MAPPED = range(10_000, 60_000)

_lock = threading.Lock()
_taken: set[int] = set()


def take(of: range = HIGH) -> int:
    """Take an id that no other sandbox of this judge has.

    Two judges take ids from disjoint ranges, by their process ids; a collision would only share limits.
    """
    with _lock:
        start = os.getpid() * 64 % len(of)
        uid = next(u for i in range(len(of)) if (u := of[(start + i) % len(of)]) not in _taken)
        _taken.add(uid)
        return uid


def among(daemon: Mapping[str, Any]) -> range:
    """The ids available in a Docker daemon's containers; `daemon` is the output of `docker info`."""
    options = ",".join(daemon.get("SecurityOptions") or ())
    return _MAPPED if "name=rootless" in options or "name=userns" in options else HIGH


def release(uid: int) -> None:
    """Return an id, so that another sandbox can have it."""
    with _lock:
        _taken.discard(uid)


def passwd(uid: int) -> str:
    """The content of /etc/passwd: libraries name their cache directories after the user, so there must be one."""
    return f"runner:x:{uid}:{uid}::{inside.HOME}:/bin/sh\n"
