"""Entry point inside the sandbox: reads one request and writes one answer, both as JSON.

Their descriptors come with the first packet. Called as `python -I -B -u PATH SOCKET`.
"""

from __future__ import annotations

import json
import os
import socket
import sys
from pathlib import Path
from typing import Any


def main(address: str) -> None:
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    asker = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    asker.connect(address)
    _, [question, answer], _, _ = socket.recv_fds(asker, 1, 2)
    asker.close()
    request = json.loads(os.pread(question, os.fstat(question).st_size, 0))
    os.close(question)
    nowhere = os.open(os.devnull, os.O_WRONLY)  # nobody reads what a reference prints, and a full pipe would block it
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    with os.fdopen(answer, "w", encoding="utf-8", errors="backslashreplace") as file:
        json.dump(look(request), file, allow_nan=False)


def look(request: dict[str, Any]) -> dict[str, Any]:
    """The sizes of all cases, and the host memory that was needed to find them; or {"refused": why}."""
    from harness.importer import gpu_mode, kernelbench
    from harness.importer.loaded import ReferenceFiles, in_one_line
    from harness.importer.values import ImportRefused

    # A process boundary: any exception of untrusted code, even SystemExit, becomes a line of text.
    try:
        form = gpu_mode if request["form"] == "gpu-mode" else kernelbench
        return {**form.look(request, ReferenceFiles(request["files"])), "host_bytes": _most_host_bytes()}
    except ImportRefused as refusal:
        return {"refused": str(refusal)}
    except BaseException as error:  # noqa: BLE001
        return {"refused": in_one_line(error)}


def _most_host_bytes() -> int:
    """The peak memory of this process; `getrusage` would include that of its parent when it was forked."""
    status = Path("/proc/self/status").read_text()
    return next(int(line.split()[1]) << 10 for line in status.splitlines() if line.startswith("VmHWM:"))


if __name__ == "__main__":
    main(sys.argv[1])
