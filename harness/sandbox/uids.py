"""Gives each sandbox a user id of its own, because the kernel counts many resources per user id.

Called by the providers that isolate. Trusted. Processes, pending signals, message queue bytes, epoll watches and pipe
buffers are counted per user, so two sandboxes with the same user could exhaust each other's limits.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from typing import Any

from harness.sandbox import inside

HIGH = range(60_000_000, 60_100_000)
# A user namespace of a Docker daemon usually has 65536 ids.
_MAPPED = range(10_000, 60_000)

_lock = threading.Lock()
_taken: set[int] = set()


def take(ids: range = HIGH) -> int:
    """Take an id that no other sandbox of this judge has.

    Judges begin at different ids, by their process ids. In a collision two sandboxes would only share limits.
    """
    with _lock:
        start = os.getpid() * 64 % len(ids)
        uid = next(u for i in range(len(ids)) if (u := ids[(start + i) % len(ids)]) not in _taken)
        _taken.add(uid)
        return uid


def among(daemon: Mapping[str, Any]) -> range:
    """The ids that a Docker daemon's containers can use; `daemon` is the output of `docker info`."""
    options = ",".join(daemon.get("SecurityOptions") or ())
    return _MAPPED if "name=rootless" in options or "name=userns" in options else HIGH


def release(uid: int) -> None:
    """Return an id, so that another sandbox can have it."""
    with _lock:
        _taken.discard(uid)


def passwd(uid: int) -> str:
    """The content of /etc/passwd, which libraries need to name their cache directories after the user."""
    return f"runner:x:{uid}:{uid}::{inside.HOME}:/bin/sh\n"
