"""What was handed in, kept by content: `<root>/<slug>/<author>/<hash>-<name>`.

The front door archives what it grades, so that every hash in the ledger can be looked up. Trusted code; the file's
name is the participant's, and is used for nothing but a readable end of a path. The source is stored byte for byte.
"""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path

from harness.errors import HarnessError
from harness.submission import Submission
from harness.verdict import SubmissionId
from leaderboard.record.durable import unwritable, write_whole

_NAME_LENGTH = 96
_COMPONENT = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,127}")


def archive(root: Path, slug: str, submission: Submission) -> Path:
    """Store a submission's source and return where; what is already there is left alone.

    Raises:
        HarnessError: the slug or the author cannot stand in a path, other content has the file's name, or it cannot be
            written.
    """
    path = location(root, slug, submission.author, submission.sha256, submission.name)
    try:
        with suppress(FileExistsError):  # also of another process that archives the same file now
            write_whole(path, submission.source, replace=False)
        stored = path.read_bytes()
    except OSError as error:
        raise HarnessError(f"{path}: the submission cannot be archived ({error.strerror})") from error
    if stored != submission.source:
        raise HarnessError(f"{path}: holds something other than what was submitted", "restore or remove that file")
    return path


def refuse_if_unwritable(root: Path, slug: str, submission: Submission) -> None:
    """Refuse, before a grading has cost its time, what `archive` would refuse after it; nothing is changed.

    Raises:
        HarnessError: as for `archive`.
    """
    path = location(root, slug, submission.author, submission.sha256, submission.name)
    if folder := unwritable(path):
        raise HarnessError(
            f"{path}: the submission cannot be archived in {folder}", "make it a folder that can be written"
        )


def location(root: Path, slug: str, author: str, sha256: str, name: str) -> Path:
    """Where a source with this hash lies, whether or not it is there.

    Raises:
        HarnessError: the slug or the author cannot stand in a path.
    """
    for component in (slug, author):
        if not _COMPONENT.fullmatch(component):
            raise HarnessError(f"{component!r} cannot be the name of a directory in the archive")
    return root / slug / author / f"{sha256[:16]}-{safe_name(name)}"


def present(root: Path, slug: str, submission: SubmissionId) -> bool:
    """Whether a source seems to be there; `stored` reads it. A name that cannot stand in a path was never archived."""
    try:
        return location(root, slug, submission.author, submission.sha256, submission.name).is_file()
    except HarnessError:
        return False


def stored(root: Path, slug: str, submission: SubmissionId) -> Submission:
    """What was handed in, read back from the archive, for a second grading or to compare it.

    Raises:
        HarnessError: it is not there, cannot be read, or is not what was graded: its hash is another.
    """
    path = location(root, slug, submission.author, submission.sha256, submission.name)
    try:
        source = path.read_bytes()
    except OSError as error:
        raise HarnessError(f"{path}: the archived source cannot be read ({error.strerror})") from error
    found = Submission(name=submission.name, author=submission.author, language=submission.language, source=source)
    if found.sha256 != submission.sha256:
        raise HarnessError(f"{path}: is not what was graded (its hash is {found.sha256[:12]})", "restore the file")
    return found


def safe_name(name: str) -> str:
    """A file name of plain characters, at most 96 of them, that no directory listing hides; the suffix is kept."""
    plain = re.sub(r"[^A-Za-z0-9._-]+", "_", name).lstrip(".") or "_"
    stem, dot, suffix = plain.rpartition(".")
    if not stem or len(suffix) > 8:
        return plain[:_NAME_LENGTH]
    return stem[: _NAME_LENGTH - len(suffix) - 1] + dot + suffix
