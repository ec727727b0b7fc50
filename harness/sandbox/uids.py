"""User ids, each for one sandbox at a time, because the kernel keeps many limits by user id.

Called by the providers that isolate. Trusted. Processes, pending signals, bytes of message queues, watches of epoll and
buffers of pipes are counted by user: two sandboxes of one user could use up each other's.
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
    """One that no other sandbox of this judge has.

    Two judges draw from disjoint parts, by their process ids; a collision would only share limits.
    """
    with _lock:
        start = os.getpid() * 64 % len(of)
        uid = next(u for i in range(len(of)) if (u := of[(start + i) % len(of)]) not in _taken)
        _taken.add(uid)
        return uid


def among(daemon: Mapping[str, Any]) -> range:
    """The ids that there are in the containers of a Docker daemon; `daemon` is what `docker info` says of it."""
    options = ",".join(daemon.get("SecurityOptions") or ())
    return _MAPPED if "name=rootless" in options or "name=userns" in options else HIGH


def release(uid: int) -> None:
    """Let another sandbox have it."""
    with _lock:
        _taken.discard(uid)


def passwd(uid: int) -> str:
    """The file /etc/passwd: libraries name their cache directories after the user, so there has to be one."""
    return f"runner:x:{uid}:{uid}::{inside.HOME}:/bin/sh\n"
