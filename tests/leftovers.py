"""What gradings could leave behind on this machine: processes, containers, mounts and files.

Tests that grade run two at a time (pytest-xdist). What another test is running at the moment is not left
behind: its processes descend from another worker of pytest or from a process that inherited that worker's environment
(a resident worker outlives the command that started it), its containers name a judge that does, and its files are in
another temporary folder (tests/conftest.py). A process whose parents have ended, or a container whose judge has, may be
of either test. It counts if it stays: the other test ends its own within a minute. What another checkout grades runs
another interpreter, and its containers name a judge that lives.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from harness.sandbox import ending
from harness.sandbox.docker import JUDGE_LABEL
from tests import nursery

_LOOKS, _BETWEEN_S = 300, 0.2  # for a minute
_T = TypeVar("_T")
Found = dict[str, list[str]]


@contextmanager
def nothing_left() -> Iterator[None]:
    """Fails where something of ours is there afterwards that was not there before."""
    before = leftovers()
    yield
    left = new(before, leftovers())
    assert not left, left


def leftovers() -> Found:
    """Everything of ours that is there now, by its kind, once this process has removed what it is removing."""
    ending.wait()
    return {"processes": _processes(), "containers": _containers(), "mounts": _mounts(), "files": _files()}


def new(before: Found, now: Found) -> Found:
    """What is there now and was not before; a kind without any is left out."""
    added = {kind: [item for item in items if item not in before[kind]] for kind, items in now.items()}
    return {kind: items for kind, items in added.items() if items}


def _processes() -> list[str]:
    found, orphans = set(), set()
    for process in _ours():
        ancestors = _ancestors(process[0])
        if os.getpid() in ancestors:
            found.add(process)
        elif not _of_another_worker(ancestors):
            orphans.add(process)
    return [f"{pid}: {line}" for pid, line in sorted(found | _that_stay(orphans, _ours))]


def _that_stay(orphans: set[_T], now: Callable[[], set[_T]]) -> set[_T]:
    """Those that do not end."""
    for _ in range(_LOOKS):
        if not orphans:
            break
        time.sleep(_BETWEEN_S)
        orphans &= now()
    return orphans


def _of_another_worker(ancestors: list[int]) -> bool:
    """Whether a process with these ancestors belongs to another worker of this run of pytest."""
    if (worker := os.environ.get("PYTEST_XDIST_WORKER")) is None:
        return False
    named = [_environment(pid) for pid in ancestors]
    run = os.environ["PYTEST_XDIST_TESTRUNUID"]
    return os.getppid() in ancestors or any(
        of["PYTEST_XDIST_TESTRUNUID"] == run and of["PYTEST_XDIST_WORKER"] != worker
        for of in named
        if "PYTEST_XDIST_TESTRUNUID" in of
    )


def _environment(pid: int) -> dict[str, str]:
    """What the process was started with; empty if it has ended."""
    try:
        given = Path(f"/proc/{pid}/environ").read_bytes().decode(errors="replace")
    except OSError:
        return {}
    return dict(item.partition("=")[::2] for item in given.split("\0"))


def _ours() -> set[tuple[int, str]]:
    """Process id and command line of each runner and launcher that this checkout's interpreter runs."""
    found = set()
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
            forked = path.with_name("comm").read_text().strip() == nursery.NAME
        except OSError:
            continue  # it ended in this moment
        programs = [f"harness/{role}/__main__.py" for role in ("runner", "launcher")]
        if sys.prefix in line and (forked or any(program in line for program in programs)):
            found.add((int(path.parent.name), line))
    return found


def _containers() -> list[str]:
    if shutil.which("docker") is None:
        return []
    found, orphans = set(), set()
    for container in _labelled():
        judge = int(container.rpartition(" ")[2])
        if os.getpid() in _ancestors(judge):
            found.add(container)
        elif not Path(f"/proc/{judge}").exists():
            orphans.add(container)
    return sorted(found | _that_stay(orphans, _labelled))


def _labelled() -> set[str]:
    """Id and judge's process id of each container of a runner or launcher."""
    shown = f'{{{{.ID}}}} {{{{.Label "{JUDGE_LABEL}"}}}}'
    command = ["docker", "ps", "-a", "--filter", "label=kernelmark=runner", "--format", shown]
    return set(subprocess.run(command, capture_output=True, text=True, check=False).stdout.splitlines())


def _mounts() -> list[str]:
    return [line for line in Path("/proc/self/mounts").read_text().splitlines() if "kernelmark" in line]


def _files() -> list[str]:
    # Lock files stay: judges of different users meet in them.
    found = Path(tempfile.gettempdir()).glob("kernelmark*")
    return [str(path) for path in found if path.suffix != ".lock"]


def groups(judges: Iterable[int]) -> list[str]:
    """The control groups that are there of sandboxes of these processes.

    Not by `Path.rglob`, which raises where the group of another test's sandbox is removed while it looks.
    """
    prefixes = tuple(f"kernelmark-{pid}-" for pid in judges)
    return sorted(
        name for _, names, _ in os.walk("/sys/fs/cgroup") for name in names if name.startswith(prefixes)
    )  # fmt: skip


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
