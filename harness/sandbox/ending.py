"""Ends sandboxes, and removes their remains in threads, so that no verdict waits for that. Trusted.

Code that ends this process by `os._exit` must call `wait` first. Any other end of the process waits for the threads.
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
    """Close a sandbox, and log a warning if something remains or it took long."""
    begun = time.monotonic()
    if _removed(sandbox.close) and (took_s := time.monotonic() - begun) > _LONG_S:
        _warn(f"the processes of a sandbox took {took_s:.0f} s to end")


def later(remove: Callable[[], None]) -> None:
    """Call `remove` in a thread; a `SandboxError` becomes a warning."""

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
    """Wait until all calls by `later` are done."""
    # Not by `join`: if that is interrupted, Python 3.11 considers the thread ended. With a timeout, since Ctrl-C does
    # not interrupt a wait that begins just after it.
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
