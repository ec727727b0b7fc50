"""A scratch git repository, for tests of what a branch hands in and of what merging does."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

# A developer's own configuration (signing, hooks, templates) is not the scratch repository's.
_ALONE = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
    **{f"GIT_{who}_{what}": "scratch@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
}


def git(directory: Path, *arguments: str, status: int = 0) -> str:
    """Run git there, and return what it printed; it must end with `status`."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")} | _ALONE
    done = subprocess.run(
        ["git", *arguments], cwd=directory, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout + done.stderr


def commit(directory: Path, files: dict[str, str | None] | None = None, message: str = "change") -> str:
    """Write files (None removes one), commit everything, and return the commit."""
    for name, content in (files or {}).items():
        path = directory / name
        if content is None:
            path.unlink()
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)
    git(directory, "add", "-A")
    git(directory, "commit", "-qm", message, "--allow-empty")
    return git(directory, "rev-parse", "HEAD").strip()


def init(directory: Path) -> str:
    """Make a repository of what is in a folder; the branch is main."""
    git(directory, "init", "-q", "-b", "main")
    return commit(directory, message="begin")
