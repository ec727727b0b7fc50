"""Ends a sandbox, and removes in threads what no process uses any more, so that no verdict waits for it. Trusted.

Whoever ends this process by `os._exit` calls `wait` first; any other end of it waits for these threads.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from harness.errors import SandboxError
from harness.sandbox.protocol import Sandbox
from harness.wire import checks

_LONG_S, _LOOK_S = 10.0, 0.2
_log = logging.getLogger("kernelmark")
_removing: set[threading.Thread] = set()
_changed = threading.Condition()


def end(sandbox: Sandbox) -> None:
    """Close a sandbox, and warn if it left something or took long; without a logging configuration, on stderr."""
    begun = time.monotonic()
    if _removed(sandbox.close) and (took_s := time.monotonic() - begun) > _LONG_S:
        _warn(f"the processes of a sandbox took {took_s:.0f} s to end")


def later(remove: Callable[[], None]) -> None:
    """Call this in a thread; what it raises as a `SandboxError` is a warning."""

    def work() -> None:
        try:
            _removed(remove)
        finally:
            with _changed:
                _removing.discard(threading.current_thread())
                _changed.notify_all()

    with _changed:
        thread = threading.Thread(target=work, name="removal")
        thread.start()
        _removing.add(thread)


def wait() -> None:
    """Wait until all that `later` was given is done."""
    # Not by `join`, after whose interruption Python 3.11 takes a thread for one that has ended. Again and again, since
    # Ctrl-C does not interrupt a wait that begins just after it.
    with _changed:
        while not _changed.wait_for(lambda: not _removing, _LOOK_S):
            pass


def _removed(remove: Callable[[], None]) -> bool:
    try:
        remove()
    except SandboxError as error:
        _warn(f"a sandbox could not be removed ({error})")
        return False
    return True


def _warn(problem: str) -> None:
    _log.warning("kernelmark: warning: %s", checks.printable(problem))
