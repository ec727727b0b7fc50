"""What gradings could leave behind on this machine: processes, containers, mounts and files.

Tests that grade run two at a time (pytest-xdist). What a test beside this one has at work at the moment is not left
behind: its processes descend from another worker of pytest, its containers name a judge that does, and its files lie in
another temporary folder (tests/conftest.py). A process that lost its parents is counted by everybody. What another
checkout grades runs another interpreter, and its containers name a judge that lives.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from harness.sandbox.docker import JUDGE_LABEL


def leftovers() -> dict[str, list[str]]:
    """Everything of ours that is there now; compare before and after."""
    return {"processes": _processes(), "containers": _containers(), "mounts": _mounts(), "files": _files()}


def _processes() -> list[str]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue  # it ended in this moment
        if sys.prefix in line and any(f"harness/{role}/__main__.py" in line for role in ("runner", "launcher")):
            found.append((int(path.parent.name), line))
    return sorted(f"{pid}: {line}" for pid, line in found if not _beside(pid))


def _containers() -> list[str]:
    if shutil.which("docker") is None:
        return []
    shown = f'{{{{.ID}}}} {{{{.Label "{JUDGE_LABEL}"}}}}'
    command = ["docker", "ps", "-a", "--filter", "label=kernelmark=runner", "--format", shown]
    listing = subprocess.run(command, capture_output=True, text=True, check=False)
    return sorted(line for line in listing.stdout.splitlines() if _judged_here(int(line.rpartition(" ")[2])))


def _mounts() -> list[str]:
    return sorted(line for line in Path("/proc/self/mounts").read_text().splitlines() if "kernelmark" in line)


def _files() -> list[str]:
    # Lock files stay: judges of different users meet in them.
    found = Path(tempfile.gettempdir()).glob("kernelmark*")
    return sorted(path.name for path in found if path.suffix != ".lock")


def _beside(pid: int) -> bool:
    """Whether a process belongs to a test that another worker of pytest runs."""
    ancestors = _ancestors(pid)
    return "PYTEST_XDIST_WORKER" in os.environ and os.getppid() in ancestors and os.getpid() not in ancestors


def _judged_here(judge: int) -> bool:
    """Whether a container's judge descends from this pytest, or has ended without removing it."""
    return os.getpid() in _ancestors(judge) or not Path(f"/proc/{judge}").exists()


def _ancestors(pid: int) -> list[int]:
    """The process and all above it, as far as they still run."""
    found = []
    while pid > 0:
        found.append(pid)
        try:
            status = Path(f"/proc/{pid}/stat").read_text()
        except OSError:
            break
        pid = int(status.rpartition(")")[2].split()[1])
    return found
