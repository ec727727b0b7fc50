"""What gradings could leave behind on this machine: processes, containers, mounts and files.

Tests that grade run two at a time (pytest-xdist). What a test beside this one has at work at the moment is not left
behind: its processes descend from another worker of pytest, its containers name a judge that does, and its files lie in
another temporary folder (tests/conftest.py). A process whose parents have ended may be of either test. It counts
if it is still there a second later: one that the other test is ending has ended by then. What another checkout grades
runs another interpreter, and its containers name another judge.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from harness.sandbox.docker import JUDGE_LABEL


@contextmanager
def nothing_left() -> Iterator[None]:
    """Fails where something of ours is there afterwards that was not there before."""
    before = _leftovers()
    yield
    assert _leftovers() - before == set()


def _leftovers() -> set[str]:
    return {*_processes(), *_containers(), *_mounts(), *_files()}


def _processes() -> list[str]:
    found, orphans = [], set()
    for process in _ours():
        ancestors = _ancestors(process[0])
        if os.getpid() in ancestors:
            found.append(process)
        elif "PYTEST_XDIST_WORKER" not in os.environ or os.getppid() not in ancestors:
            orphans.add(process)
    if orphans:
        time.sleep(1)
        found += orphans & _ours()
    return [f"process {pid}: {line}" for pid, line in found]


def _ours() -> set[tuple[int, str]]:
    """Process id and command line of each runner and launcher that this checkout's interpreter runs."""
    found = set()
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue  # it ended in this moment
        if sys.prefix in line and any(f"harness/{role}/__main__.py" in line for role in ("runner", "launcher")):
            found.add((int(path.parent.name), line))
    return found


def _containers() -> list[str]:
    if shutil.which("docker") is None:
        return []
    shown = f'{{{{.ID}}}} {{{{.Label "{JUDGE_LABEL}"}}}}'
    command = ["docker", "ps", "-a", "--filter", "label=kernelmark=runner", "--format", shown]
    listing = subprocess.run(command, capture_output=True, text=True, check=False)
    named = [f"container {line}" for line in listing.stdout.splitlines()]
    return [line for line in named if os.getpid() in _ancestors(int(line.rpartition(" ")[2]))]


def _mounts() -> list[str]:
    return [line for line in Path("/proc/self/mounts").read_text().splitlines() if "kernelmark" in line]


def _files() -> list[str]:
    # Lock files stay: judges of different users meet in them.
    found = Path(tempfile.gettempdir()).glob("kernelmark*")
    return [str(path) for path in found if path.suffix != ".lock"]


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
