"""Looks at a problem on one device after the other, until one can run it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from harness.importer.values import Refusal


def on_first(devices: Iterable[str], look: Callable[[str], dict[str, Any]]) -> dict[str, Any]:
    """What is seen on the first device where looking does not fail.

    Raises:
        Refusal: the problem cannot be stated, whatever the device.
        Exception: it failed on the last device.
    """
    *first, last = devices
    for device in first:
        try:
            return look(device)
        except Refusal:
            raise
        except Exception:  # noqa: BLE001  # whatever a stranger's code raises: the last device decides
            continue
    return look(last)
