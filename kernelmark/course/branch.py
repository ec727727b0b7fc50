"""What a branch changes, as git's objects have it, and never as a working tree does.

`changed` and `strays` ask. Trusted, over a branch that a stranger wrote.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from harness.errors import UsageError

_FETCH = "fetch both, with their history (git fetch --unshallow)"


class Change(NamedTuple):
    """A path that was added, changed or removed: its mode and blob are now those, and the status is git's letter.

    A moved file is one that was removed and one that was added. A symbolic link and a submodule are one path each.
    """

    path: str
    mode: str
    blob: str
    status: str


def changes(root: Path, base: str, head: str, folder: str | None = None) -> Iterator[Change]:
    """What `head` changes since it branched from `base`, by path: in this folder of the project, whose paths begin at
    its `root`; or, without a folder, in the whole repository, whose paths begin at its top.

    Raises:
        UsageError: this is not a git repository, or it lacks one of the two commits or their common history.
    """
    for flag, commit in (("--changed", base), ("--head", head)):
        if not commit:  # an unset variable; git would read it as HEAD, and nothing would have changed
            raise UsageError(flag, "is empty", "name a commit or a branch")
    git(root, "rev-parse", "--git-dir", remedy="run it in a clone of the project")
    fixed = ("--raw", "-z", "--no-abbrev", "--no-renames", "--no-ext-diff", "--ignore-submodules=none")
    relative, within = ("--no-relative", ()) if folder is None else ("--relative", (folder,))
    raw = git(root, "diff", *fixed, relative, "--end-of-options", f"{base}...{head}", "--", *within)
    fields = raw.split(b"\0")[:-1]
    for header, name in zip(fields[::2], fields[1::2], strict=True):
        _, mode, _, blob, status = header.decode().split(" ")
        yield Change(name.decode("utf-8", "backslashreplace"), mode, blob, status)


def git(directory: Path, *arguments: str, remedy: str = _FETCH) -> bytes:
    """What git prints.

    Raises:
        UsageError: it fails, or is not there.
    """
    try:
        done = subprocess.run(["git", "-C", str(directory), *arguments], capture_output=True, check=False)
    except OSError as error:
        raise UsageError("git", f"cannot be run ({error.strerror})", "install git") from error
    if done.returncode != 0:
        what = done.stderr.decode("utf-8", "backslashreplace").strip().removeprefix("fatal: ").splitlines()
        raise UsageError(f"git {arguments[0]}", what[0] if what else f"ended with {done.returncode}", remedy)
    return done.stdout
