"""Shares the times of baselines among the workers of one device, so that each is measured once. Trusted."""

from __future__ import annotations

import contextlib
import fcntl
from collections.abc import Callable
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from harness.judge.timing.overall import KnownTimes

_FOUND: TypeAdapter[KnownTimes | str] = TypeAdapter(KnownTimes | str)


def once(folder: Path | None, name: str, measure: Callable[[], KnownTimes | str]) -> KnownTimes | str:
    """The times that another worker stored under `name`; if there are none, call `measure` and store its result.

    A lock lets one worker measure at a time. If that worker fails or is killed, the next one measures. Without a
    folder, or if it cannot be used, every worker measures for itself.
    """
    if folder is None:
        return measure()
    file = folder / name
    with contextlib.ExitStack() as held:
        with contextlib.suppress(OSError):
            lock = held.enter_context(file.with_name(f"{name}.lock").open("wb"))
            fcntl.flock(lock, fcntl.LOCK_EX)
        with contextlib.suppress(OSError, ValidationError):
            return _FOUND.validate_json(file.read_bytes())
        found = measure()
        with contextlib.suppress(OSError):
            file.write_bytes(_FOUND.dump_json(found))
        return found
