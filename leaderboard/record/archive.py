"""Archives submitted sources by content: `<root>/<slug>/<author>/<hash>-<name>`, with a source's other files in the
folder `<hash>`, under their own names.

`kernelmark` archives every recorded submission, so every hash in the ledger can be looked up. Profiles of
runs are in the same folders (`profile.py`). Trusted code; the file name comes from the participant, and serves only to
make the path readable. Every file is stored byte for byte, and read only if it is a regular file: an archive comes with
pull requests too.
"""

from __future__ import annotations

import errno
import os
import re
from contextlib import suppress
from pathlib import Path

from harness.errors import HarnessError, UsageError
from harness.files import outside
from harness.submission import MAX_SOURCE_BYTES, Submission
from harness.verdict import SubmissionId
from leaderboard.record.durable import UNRECORDED, unwritable, write_whole

_NAME_LENGTH = 96
_EARLIER_DIGITS = 16
_COMPONENT = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,127}")


def archive(root: Path, slug: str, submission: Submission) -> Path:
    """Store a submission's files and return the source's path; files that are already there are left alone.

    Raises:
        HarnessError: the slug or the author is not a valid path component, the path holds other content, or it cannot
            be written.
    """
    files = _files(root, slug, submission)
    # The source last: where it is, the others are.
    for file, content in reversed(files):
        if not os.path.lexists(file):  # otherwise it was archived before
            try:
                with suppress(FileExistsError):  # just now, by another process
                    write_whole(file, content, replace=False)
            except OSError as error:
                raise _unarchived(file, error) from error
        _refuse_other(file, content)
    return files[0][0]


def refuse_other_content(root: Path, slug: str, submission: Submission) -> None:
    """Check, before a grading, that the files already in the archive are those of this submission.

    Raises:
        HarnessError: as for `archive`.
    """
    for file, content in _files(root, slug, submission):
        if os.path.lexists(file):
            _refuse_other(file, content)


def _files(root: Path, slug: str, submission: Submission) -> list[tuple[Path, bytes]]:
    """The archive paths of a submission's files and their contents, the source first."""
    contents = (submission.source, *(content for _, content in submission.beside))
    return [*zip(paths(root, slug, SubmissionId.of(submission)), contents, strict=True)]


def _refuse_other(file: Path, content: bytes) -> None:
    try:
        stored = outside.read(file, MAX_SOURCE_BYTES)
    except outside.TooLarge:
        stored = b""
    except OSError as error:
        raise _unarchived(file, error) from error
    if stored != content:
        raise HarnessError(f"{file} holds something other than what was submitted", "restore or remove that file")


def _unarchived(file: Path, error: OSError) -> HarnessError:
    what = f"{file}: the submission cannot be archived ({error.strerror})"
    return HarnessError(what, "free some space, then submit again" if error.errno == errno.ENOSPC else "")


def refuse_if_unwritable(root: Path, slug: str, submission: Submission) -> None:
    """Check, before a grading, that its submission can be archived. Changes nothing.

    Raises:
        HarnessError: the slug or the author is not a valid path component.
        UsageError: it cannot be written.
    """
    for path in paths(root, slug, SubmissionId.of(submission)):
        if folder := unwritable(path):
            raise UsageError(str(path), f"the submission cannot be archived in {folder}", UNRECORDED)


def location(root: Path, slug: str, author: str, sha256: str, name: str) -> Path:
    """The archive path of a source with this hash, whether or not it exists.

    Raises:
        HarnessError: the slug or the author is not a valid path component.
    """
    new, earlier = (folder(root, slug, author) / file for file in _source_names(sha256, name))
    return earlier if os.path.lexists(earlier) else new


def listed(names: frozenset[str], sha256: str, name: str) -> bool:
    """Whether a source with this hash is among the names in its author's folder (`listing`)."""
    return not names.isdisjoint(_source_names(sha256, name))


def _source_names(sha256: str, name: str) -> tuple[str, str]:
    """The file names of a source with this hash in the archive: today's, and that of earlier versions.

    Earlier versions used only the beginning of the hash, for which somebody can find two sources.
    """
    return f"{sha256}-{safe_name(name)}", f"{sha256[:_EARLIER_DIGITS]}-{safe_name(name)}"


def listing(root: Path, slug: str, author: str) -> frozenset[str]:
    """The names in the archive folder of an author's runs on a problem; none if it cannot be read."""
    with suppress(OSError, HarnessError):
        return frozenset(file.name for file in folder(root, slug, author).iterdir())
    return frozenset()


def paths(root: Path, slug: str, submission: SubmissionId) -> list[Path]:
    """The archive paths of a submission's files, its source first, whether or not they exist.

    Raises:
        HarnessError: the slug or the author is not a valid path component.
    """
    source = location(root, slug, submission.author, submission.sha256, submission.name)
    if not submission.beside:
        return [source]
    earlier = source.parent / submission.sha256[:_EARLIER_DIGITS]
    others = earlier if earlier.is_dir() else source.parent / submission.sha256
    return [source, *(others / name for name in submission.beside)]


def folder(root: Path, slug: str, author: str) -> Path:
    """The archive folder of an author's runs on a problem, whether or not it exists.

    Raises:
        HarnessError: the slug or the author is not a valid path component.
    """
    for component in (slug, author):
        if not _COMPONENT.fullmatch(component):
            raise HarnessError(f"{component!r} cannot be the name of a directory in the archive")
    return root / slug / author


def present(root: Path, slug: str, submission: SubmissionId) -> bool:
    """Whether a submission's files exist, unread; false if the slug or the author is not a valid path component."""
    try:
        return all(path.is_file() for path in paths(root, slug, submission))
    except HarnessError:
        return False


def stored(root: Path, slug: str, submission: SubmissionId) -> Submission:
    """Read a submission back from the archive, to grade or compare it again.

    Raises:
        HarnessError: a file is missing or cannot be read, or the hash is not that of the graded submission.
    """
    path, *_ = found = paths(root, slug, submission)
    source, *others = map(_read, found)
    archived = Submission(
        name=submission.name,
        author=submission.author,
        language=submission.language,
        source=source,
        beside=tuple(zip(submission.beside or (), others, strict=True)),
    )
    if archived.sha256 != submission.sha256:
        what = f"{path} is not what was graded (its hash is {archived.sha256[:12]}"
        raise HarnessError(what + (", with the files beside it)" if others else ")"), "restore the file")
    return archived


def _read(path: Path) -> bytes:
    try:
        return outside.read(path, MAX_SOURCE_BYTES)
    except OSError as error:
        what = f"{path}: the archived source cannot be read ({error.strerror})"
        raise HarnessError(what, "restore the file") from error


def safe_name(name: str) -> str:
    """A file name of at most 96 plain characters that does not begin with a dot; the suffix is kept."""
    plain = re.sub(r"[^A-Za-z0-9._-]+", "_", name).lstrip(".") or "_"
    stem, dot, suffix = plain.rpartition(".")
    if not stem or len(suffix) > 8:
        return plain[:_NAME_LENGTH]
    return stem[: _NAME_LENGTH - len(suffix) - 1] + dot + suffix
