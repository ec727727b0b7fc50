"""The archive that sources are read from, where `leaderboard.visibility` lets them be shown; hostile text.

Whatever may not be shown is never read, so that it cannot come into a built file.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import cast

from harness.submission import Language, Submission
from leaderboard.archive import safe_name


def stored(root: Path, problem: str, author: str, name: str, sha256: str) -> Path | None:
    """Where the archive has a submission; None where it has none, or where a name is no single component of a path."""
    path = root / problem / author / f"{sha256[:16]}-{safe_name(name)}"
    if path.parent.parent.parent != root or ".." in (problem, author):
        return None
    return path if os.path.isfile(path) else None  # noqa: PTH113 - false, not an error, for a name that no file can have


def archived(root: Path, problem: str, author: str, name: str, language: str, sha256: str) -> str | None:
    """A submission's source as it was handed in; None where the archive has not exactly that."""
    path = stored(root, problem, author, name, sha256)
    if path is None:
        return None
    try:
        source = path.read_bytes()
        found = Submission(name=name, author=author, language=cast(Language, language), source=source)
        return source.decode() if found.sha256 == sha256 else None
    except (OSError, ValueError):
        return None
