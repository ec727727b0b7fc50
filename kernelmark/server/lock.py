"""A server's folder in the project, `.kernelmark/server`, and the lock by which one process at a time serves it.

`process` takes the lock before anything else, and `submit` asks whether a server runs. What cannot be served safely is
refused here: a folder on a network's file system, where neither locks nor SQLite can be trusted, and an archive of
sources that git would publish.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from harness.errors import UsageError
from harness.files import outside
from kernelmark.project.project import Project

FOLDER = Path(".kernelmark") / "server"
DATABASE = "server.db"
_LOCK = "lock"
_MOUNTS = Path("/proc/self/mountinfo")
_OF_A_NETWORK = ("nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "fuse.sshfs")
_GIT_S = 30
_TRIES, _PAUSE_S = 10, 0.05


@contextmanager
def served(project: Project, command: str = "kernelmark serve") -> Iterator[ServerFolder]:
    """Hold the project's lock; yields the server's folder, which only its user can read.

    Args:
        command: what holds the lock, for anyone else who wants it.

    Raises:
        UsageError: the project is served already, or its folder is on a network's file system.
    """
    folder = project.root / FOLDER
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.chmod(0o700)
        (folder.parent / ".gitignore").write_text("*\n")
        lock = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise UsageError(str(folder), f"cannot be used ({error.strerror})", "make it writable for you") from error
    try:
        refuse_network(folder)
        if not _locked(lock):
            what = f"is served already, by {_holder(lock) or 'another process'}"
            raise UsageError(str(project.root), what, "use that server, or end it first")
        found = ServerFolder(folder, lock)
        found.write_holder(f"process {os.getpid()} ({command})")
        try:
            yield found
        finally:
            found.write_holder("")
    finally:
        os.close(lock)


def _locked(lock: int) -> bool:
    """Take the lock; False if another process keeps it. `address_of_server` has it for a moment only."""
    for _ in range(_TRIES):
        with suppress(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        time.sleep(_PAUSE_S)
    return False


@dataclass(frozen=True)
class ServerFolder:
    """The folder of the server that holds the project's lock."""

    path: Path
    _lock: int

    def announce(self, address: str) -> None:
        """Write down where the project is served, for other processes in it."""
        self.write_holder(f"process {os.getpid()} at {address}")

    def write_holder(self, holder: str) -> None:
        """Write down who holds the lock; empty: nobody."""
        os.ftruncate(self._lock, 0)
        os.pwrite(self._lock, holder.encode("ascii", "backslashreplace"), 0)


def address_of_server(root: Path) -> str | None:
    """The address at which a running server serves the project in this folder; None if no server is known."""
    with suppress(OSError):
        lock = os.open(root / FOLDER / _LOCK, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            _, _, address = _holder(lock).partition(" at ")
            if address:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)  # the server that wrote the address was killed
        except BlockingIOError:
            return address
        finally:
            os.close(lock)
    return None


def _holder(lock: int) -> str:
    return os.pread(lock, 1000, 0).decode("ascii", "replace").strip()


def refuse_network(folder: Path, mounts: Path = _MOUNTS) -> None:
    """
    Raises:
        UsageError: the folder lies on a network's file system.
    """
    try:
        lines = outside.read(mounts, outside.TEXT_BYTES).decode("utf-8", "replace").splitlines()
    except OSError:  # not Linux
        return
    device = folder.stat().st_dev
    number = f"{os.major(device)}:{os.minor(device)}"
    for line in lines:
        first, _, second = line.partition(" - ")
        if first.split()[2:3] == [number] and (kind := second.partition(" ")[0]) in _OF_A_NETWORK:
            what = f"lies on a file system of a network ({kind}), whose locks cannot be trusted"
            raise UsageError(str(folder), what, "serve from a local disk")


def hide_archive_from_git(project: Project) -> Path | None:
    """Have git ignore the archive, which has everybody's sources, by a `.gitignore` of its own, unless it does already.

    Returns:
        The file, if it was written.

    Raises:
        UsageError: git tracks files of the archive, so sources would be published with the next push; or the archive
            cannot be written.
    """
    archive = project.locate("archive")
    try:
        archive.mkdir(parents=True, exist_ok=True)
        if _git(archive, "ls-files", "--", ".").stdout.strip():
            what = "is tracked by git: sources would be published before a problem closes"
            remedy = "name another `archive` in kernelmark.toml, or run `git rm -r --cached` on it"
            raise UsageError(str(archive), what, remedy)
        own = archive / ".gitignore"
        if own.exists() or _git(archive, "check-ignore", "--quiet", ".").returncode == 0:
            return None
        own.write_text("# `kernelmark serve` wrote this. Sources are not published before problems have closed.\n*\n")
    except OSError as error:
        raise UsageError(str(archive), f"cannot be written ({error.strerror})", "make it writable for you") from error
    return own


def _git(folder: Path, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(
            ["git", *arguments], cwd=folder, capture_output=True, stdin=subprocess.DEVNULL, timeout=_GIT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):  # without git, nothing is tracked
        return subprocess.CompletedProcess(arguments, 128, b"", b"")
