"""Answers the one question: what a problem's tensors are. The code that it runs is untrusted."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from harness.importer import gpu_mode, kernelbench
from harness.importer.files import Files, in_one_line
from harness.importer.values import Refusal

_FORMS: dict[str, Callable[[dict[str, Any], Files], dict[str, Any]]] = {
    "gpu-mode": gpu_mode.look,
    "kernelbench": kernelbench.look,
}


def _most_host_bytes() -> int:
    """The most memory that this process has held; `getrusage` would count what its parent held when it was forked."""
    status = Path("/proc/self/status").read_text()
    return next(int(line.split()[1]) << 10 for line in status.splitlines() if line.startswith("VmHWM:"))


def look(request: dict[str, Any]) -> dict[str, Any]:
    """The sizes of every case, and the host memory that it took to find them; or {"refused": why}."""
    # A process boundary: whatever untrusted code raises, SystemExit too, ends here as a line of text.
    try:
        answer = _FORMS[request["form"]](request, Files(request["files"]))
        return {**answer, "host_bytes": _most_host_bytes()}
    except Refusal as refusal:
        return {"refused": str(refusal)}
    except BaseException as error:  # noqa: BLE001
        return {"refused": in_one_line(error)}
