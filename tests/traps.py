"""What somebody may put where a file is expected: pipes, devices, links in a circle, folders, files without end."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

ENDS_S = 120  # far more than any refusal takes: an open that waits would wait for ever


def _socket(path: Path) -> None:
    here = Path.cwd()
    os.chdir(path.parent)  # the address of a socket has at most 107 bytes
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(path.name)
    finally:
        os.chdir(here)


def _huge(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(1 << 40)  # of which nothing is on disk


TRAPS: dict[str, Callable[[Path], None]] = {
    "pipe": os.mkfifo,
    "socket": _socket,
    "endless": lambda path: path.symlink_to("/dev/zero"),
    "circle": lambda path: path.symlink_to(path.name),
    "folder": Path.mkdir,
    "huge": _huge,
}
LINKS = {"endless", "circle"}


@contextmanager
def deep(folder: Path) -> Iterator[None]:
    """3,000 folders in each other, deeper than Python's stack and than the longest path, removed at the end."""
    here = os.open(".", os.O_RDONLY)
    try:
        os.chdir(folder)
        for _ in range(3000):
            os.mkdir("d")  # noqa: PTH102
            os.chdir("d")
        os.fchdir(here)
        yield
    finally:
        os.fchdir(here)
        os.close(here)
        subprocess.run(["rm", "-rf", str(folder / "d")], check=True)  # pytest's own removal is recursive


@contextmanager
def ends() -> Iterator[None]:
    """Fails, instead of waiting for ever."""

    def late(*_: object) -> None:
        pytest.fail("it waits")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(ENDS_S)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
