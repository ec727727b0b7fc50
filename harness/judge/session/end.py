"""Ends a sandbox. Trusted."""

from __future__ import annotations

import logging
import time

from harness.errors import SandboxError
from harness.sandbox import Sandbox
from harness.wire import checks

_LONG_S = 10.0
_log = logging.getLogger("kernelmark")


def end(sandbox: Sandbox) -> None:
    """Close a sandbox, and warn if it left something or took long; without a logging configuration, on stderr."""
    begun = time.monotonic()
    try:
        sandbox.close()
        took_s = time.monotonic() - begun
        problem = f"the processes of a sandbox took {took_s:.0f} s to end" if took_s > _LONG_S else ""
    except SandboxError as error:
        problem = f"a sandbox could not be removed ({error})"
    if problem:
        _log.warning("kernelmark: warning: %s", checks.printable(problem))
