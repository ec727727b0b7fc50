"""What a branch changes outside the folders of its author: `kernelmark grade --changed BASE --only AUTHOR`.

Trusted, over a branch that a stranger wrote. Whoever merges a branch takes all of it, and a ledger is a valid chain
no matter who appended to it. So a branch that changes the record, problems, settings or workflows as well as a
kernel is refused before the kernel is graded.
"""

from __future__ import annotations

import unicodedata
from pathlib import Path, PurePosixPath

from harness.errors import UsageError
from kernelmark.course.changed import changes, git
from kernelmark.project.settings import FILE_NAME, Settings
from kernelmark.text.printing import say
from kernelmark.text.terminal import counted, visible

_NAMES = {FILE_NAME, "codeowners"}
_SHOWN = 20
Parts = tuple[str, ...]


def refuse_strays(settings: Settings, base: str, head: str, author: str, *, allowed: bool) -> None:
    """List on stderr what `head` changes since `base` outside the author's folders, and refuse it, unless it is
    `allowed`; the record, problems, settings, others' submissions and hidden files, such as .github/, never are.

    Raises:
        UsageError: there is such a file, or as for `changes`.
    """
    prefix = PurePosixPath(git(settings.root, "rev-parse", "--show-prefix", remedy="").decode().strip() or ".")
    found = [change.path for change in changes(settings.root, base, head)]
    if len(git(settings.root, "merge-base", "--all", "--end-of-options", base, head).split()) > 1:
        what = "branched from each other more than once, so that what a merge would change cannot be known"
        raise UsageError(f"{base} and {head}", what, "rebase the branch")
    own = (prefix / settings.submissions.as_posix()).parts
    strays = [path for path in found if not _is_own(PurePosixPath(path).parts, own, author)]
    kept = [prefix / place for place in _kept(settings)]
    refused = [path for path in strays if _is_kept(PurePosixPath(path), kept)]
    listed = [*refused, *(path for path in strays if path not in set(refused))]
    for path in listed[:_SHOWN]:
        say(f"kernelmark: note: the branch also changes {visible(path)}")
    if len(listed) > _SHOWN:
        say(f"kernelmark: note: and {len(listed) - _SHOWN} more")
    if refused or (strays and not allowed):
        named = refused or strays
        more = f" and {len(named) - 1} more" if len(named) > 1 else ""
        what = f"{head} changes {counted(len(strays), 'file')} outside the folders of {author}: {named[0]}{more}"
        remedy = "leave it out of the branch" if refused else "leave it out, or look at it and add --allow-other"
        raise UsageError("--only", what, remedy)


def _is_own(path: Parts, submissions: Parts, author: str) -> bool:
    """Whether it is `submissions/<problem>/<author>/...`, letter by letter: a folder that differs in case is not, nor
    is a hidden file, such as a `.gitattributes` that keeps a kernel out of a review.
    """
    inside = path[len(submissions) :]
    hidden = any(part.startswith(".") for part in inside)
    return path[: len(submissions)] == submissions and len(inside) > 2 and inside[1] == author and not hidden


def _kept(settings: Settings) -> list[PurePosixPath]:
    """The paths of the project that only its organizers may change; for the record, the whole folder around it."""
    record = [settings.results, settings.archive, settings.board, settings.devices]
    record += [settings.board.with_name("boards")]
    record = [place if place.parent == Path() else place.parent for place in record]
    places = (*record, settings.problems, settings.reference, settings.submissions)
    return [PurePosixPath(place.as_posix()) for place in places if not place.is_absolute()]


def _is_kept(path: PurePosixPath, kept: list[PurePosixPath]) -> bool:
    """Whether a change of this path may change one of these, on a file system that ignores case as well.

    A link or a submodule in place of a folder changes all in it.
    """
    parts = _folded(path)
    if any(part.startswith(".") for part in parts) or parts[-1] in _NAMES:
        return True
    return any(all(mine == its for mine, its in zip(parts, _folded(place), strict=False)) for place in kept)


def _folded(path: PurePosixPath) -> Parts:
    return tuple(unicodedata.normalize("NFKC", part).casefold() for part in path.parts)
