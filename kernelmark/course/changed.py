"""Finds the changes of a branch, its submissions and all other files, in git's objects and never in a working tree.

`kernelmark grade --changed` calls it. Trusted, over a branch that a stranger wrote. A submission is
`submissions/<problem>/<author>/<file>`; or, if it has other files, the one kernel in
`submissions/<problem>/<author>/<name>/` that is named like its folder. The author is the name of the folder. As the
bytes come from git's objects, symbolic links are recognized and refused, and nothing of the branch (its settings,
problems or code) is checked out to grade it.

A merge takes the whole branch, and a ledger is a valid chain no matter who appended to it. So with `--only`, a branch
that also changes the record, problems, settings or workflows is refused before its kernel is graded.
"""

from __future__ import annotations

import subprocess
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from harness.errors import SubmissionError, UsageError, nearest
from harness.languages import LANGUAGES
from harness.submission import MAX_BESIDE, MAX_SOURCE_BYTES, Submission, language_of
from kernelmark.project.problems import problem_directories
from kernelmark.project.settings import FILE_NAME, Settings
from kernelmark.text.terminal import counted, say, visible

Parts = tuple[str, ...]
_TEXTS = {".md", ".txt"}  # notes that an author may keep next to a kernel
_FOLDER, _REMOVED = "040000", "000000"
_PLAIN = {"100644", "100755"}
_KINDS = {"120000": "a symbolic link", "160000": "a submodule"}
_FETCH = "fetch both, with their history (git fetch --unshallow)"
_PROTECTED = {FILE_NAME, "codeowners"}  # names of files that only organizers may change, in any folder
_SHOWN = 20  # how many files are listed


@dataclass(frozen=True)
class SubmittedFile:
    """A file that was added, changed or removed: its path, and git's mode and blob after the change.

    `beside` has the other files of its folder, changed or not; such a submission has changed if one of its files has.
    """

    path: str
    mode: str
    blob: str
    beside: tuple[SubmittedFile, ...] = ()
    in_own_folder: bool = False

    def author(self, settings: Settings) -> str:
        """The author in whose folder it is; empty if it is in none."""
        parts = _parts(settings, self.path)
        return parts[1] if len(parts) > 2 else ""

    def read(self, settings: Settings) -> tuple[Path, Submission]:
        """The problem's directory, and the source with its other files as committed.

        Raises:
            UsageError: the path is not `<folder>/<problem>/<author>/<file>`, there is no such problem, or the author's
                name is that of a team.
            SubmissionError: a file is not a regular one, or as for `Submission.of`.
        """
        parts = _parts(settings, self.path)
        if len(parts) != (4 if self.in_own_folder else 3):
            author = f"{settings.submissions.as_posix()}/PROBLEM/AUTHOR"
            layout = f"{author}/FILE, or several files to {author}/NAME, one of them called NAME"
            raise UsageError(self.path, "is not where submissions belong", f"move it to {layout}")
        for file in (self, *self.beside):
            if file.mode not in _PLAIN:
                raise SubmissionError(file.path, f"is {_KINDS.get(file.mode, 'not a file')}", "submit the file itself")
        known = {directory.name: directory for directory in problem_directories(settings)}
        slug, author, *_, name = parts
        if slug not in known:
            raise UsageError(self.path, f"no such problem: {slug}", nearest(slug, known))
        team = settings.teams.of(author)
        if team is not None and author not in team.members:
            remedy = f"use a folder of your own; members: {', '.join(team.members)}"
            raise UsageError(self.path, f"is in a folder with the name of a team, {team.name}", remedy)
        if len(self.beside) > MAX_BESIDE:  # before git reads each of them
            raise SubmissionError(self.path, f"has {len(self.beside)} files beside it", f"use at most {MAX_BESIDE}")
        files, left = (self, *self.beside), MAX_SOURCE_BYTES
        for file in files:
            left -= int(git(settings.root, "cat-file", "-s", file.blob))
            if left < 0:
                what = f"{'with the files beside it ' if self.beside else ''}is larger than {MAX_SOURCE_BYTES:,} bytes"
                raise SubmissionError(self.path, what, "submit source, not data")
        language = language_of(PurePosixPath(self.path))
        source, *contents = (git(settings.root, "cat-file", "blob", file.blob) for file in files)
        beside = dict(zip((PurePosixPath(file.path).name for file in self.beside), contents, strict=True))
        return known[slug], Submission.of(source, language, author=author, name=name, beside=beside)


def changed(settings: Settings, base: str, head: str) -> list[SubmittedFile]:
    """The submissions that `head` adds or changes since it branched from `base`, by path; moved files are included.

    The README.md of the folder of submissions is none. Nor is a text file next to a kernel; it is listed on stderr.

    Raises:
        UsageError: this is not a git repository, one of the commits or their common history is missing, or the setting
            `submissions` is an absolute path.
    """
    folder = settings.submissions
    if folder.is_absolute():
        raise UsageError("submissions", f"{str(folder)!r} is absolute", "give a folder of the project")
    submitted, folders = [], dict[PurePosixPath, SubmittedFile | None]()
    for file in changes(settings.root, base, head, folder.as_posix()):
        own, parts = PurePosixPath(file.path).parent, _parts(settings, file.path)
        if len(parts) == 4 and own not in folders:
            folders[own] = _whole(settings, head, own)
        if folders.get(own) is None and file.mode != _REMOVED and parts != ("README.md",):
            submitted.append(file)
    submitted += [file for file in folders.values() if file is not None]
    texts = [file for file in submitted if _is_text_next_to_a_kernel(settings, head, file)]
    for text in texts:
        say(f"kernelmark: note: {visible(text.path)}: passed over, as it is not a kernel")
    return sorted((file for file in submitted if file not in texts), key=lambda file: file.path)


def _is_text_next_to_a_kernel(settings: Settings, head: str, submitted: SubmittedFile) -> bool:
    path = PurePosixPath(submitted.path)
    if len(_parts(settings, submitted.path)) != 3 or path.suffix not in _TEXTS or submitted.mode not in _PLAIN:
        return False
    others = _files(settings, head, path.parent)
    return any(PurePosixPath(file.path).suffix[1:] in LANGUAGES or file.mode == _FOLDER for file in others)


def _whole(settings: Settings, head: str, folder: PurePosixPath) -> SubmittedFile | None:
    """The submission of several files in a folder; None unless exactly one kernel is named like the folder."""
    files = _files(settings, head, folder)
    paths = {file: PurePosixPath(file.path) for file in files}
    own = [file for file, path in paths.items() if path.stem == folder.name and path.suffix[1:] in LANGUAGES]
    if len(own) != 1:
        return None
    return replace(own[0], beside=tuple(file for file in files if file != own[0]), in_own_folder=True)


def _files(settings: Settings, head: str, folder: PurePosixPath) -> list[SubmittedFile]:
    files = []
    for entry in git(settings.root, "ls-tree", "-z", "--end-of-options", head, "--", f"{folder}/").split(b"\0")[:-1]:
        header, _, name = entry.partition(b"\t")
        mode, _, blob = header.decode().split(" ")
        files.append(SubmittedFile(name.decode("utf-8", "backslashreplace"), mode, blob))
    return files


def _parts(settings: Settings, path: str) -> tuple[str, ...]:
    """The parts of a path below the folder of submissions: the problem, the author, and so on."""
    return PurePosixPath(path).relative_to(settings.submissions.as_posix()).parts


def changes(root: Path, base: str, head: str, folder: str | None = None) -> Iterator[SubmittedFile]:
    """The files that `head` changes since it branched from `base`: in a folder of the project, with paths relative to
    its `root`, or in the whole repository, with paths relative to its top.

    A moved file is a removed one and an added one. A symbolic link and a submodule are one path each.

    Raises:
        UsageError: this is not a git repository, or one of the commits or their common history is missing.
    """
    for flag, commit in (("--changed", base), ("--head", head)):
        if not commit:  # an unset variable: git would read it as HEAD, and find no changes
            raise UsageError(flag, "is empty", "name a commit or a branch")
    git(root, "rev-parse", "--git-dir", remedy="run it in a clone of the project")
    fixed = ("--raw", "-z", "--no-abbrev", "--no-renames", "--no-ext-diff", "--ignore-submodules=none")
    relative, within = ("--no-relative", ()) if folder is None else ("--relative", (folder,))
    raw = git(root, "diff", *fixed, relative, "--end-of-options", f"{base}...{head}", "--", *within)
    fields = raw.split(b"\0")[:-1]
    for header, name in zip(fields[::2], fields[1::2], strict=True):
        _, mode, _, blob, _ = header.decode().split(" ")
        yield SubmittedFile(name.decode("utf-8", "backslashreplace"), mode, blob)


def git(directory: Path, *arguments: str, remedy: str = _FETCH) -> bytes:
    """The output of git.

    Raises:
        UsageError: it fails, or is not installed.
    """
    try:
        done = subprocess.run(["git", "-C", str(directory), *arguments], capture_output=True, check=False)
    except OSError as error:
        raise UsageError("git", f"cannot be run ({error.strerror})", "install git") from error
    if done.returncode != 0:
        what = done.stderr.decode("utf-8", "backslashreplace").strip().removeprefix("fatal: ").splitlines()
        raise UsageError(f"git {arguments[0]}", what[0] if what else f"ended with {done.returncode}", remedy)
    return done.stdout


def refuse_strays(settings: Settings, base: str, head: str, author: str, *, allowed: bool) -> None:
    """List on stderr the files that `head` changes outside the author's folders, and refuse them.

    With `allowed`, only those are refused that belong to the record, problems, settings or other submissions, and
    hidden files such as .github/.

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
    protected = [prefix / place for place in _protected(settings)]
    refused = [path for path in strays if _is_protected(PurePosixPath(path), protected)]
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
    """Whether it is `submissions/<problem>/<author>/...`, in the same case, and not a hidden file, such as a
    `.gitattributes` that keeps a kernel out of a review.
    """
    inside = path[len(submissions) :]
    hidden = any(part.startswith(".") for part in inside)
    return path[: len(submissions)] == submissions and len(inside) > 2 and inside[1] == author and not hidden


def _protected(settings: Settings) -> list[PurePosixPath]:
    """The paths of the project that only its organizers may change, including the whole folder around the record."""
    record = [settings.results, settings.archive, settings.board, settings.devices]
    record += [settings.board.with_name("boards")]
    record = [place if place.parent == Path() else place.parent for place in record]
    places = (*record, settings.problems, settings.reference, settings.submissions)
    return [PurePosixPath(place.as_posix()) for place in places if not place.is_absolute()]


def _is_protected(path: PurePosixPath, protected: list[PurePosixPath]) -> bool:
    """Whether a change of this path may affect a protected one, also on a file system that ignores case.

    A link or a submodule in place of a folder changes everything in it.
    """
    parts = _folded(path)
    if any(part.startswith(".") for part in parts) or parts[-1] in _PROTECTED:
        return True
    folded = map(_folded, protected)
    return any(all(left == right for left, right in zip(parts, place, strict=False)) for place in folded)


def _folded(path: PurePosixPath) -> Parts:
    return tuple(unicodedata.normalize("NFKC", part).casefold() for part in path.parts)
