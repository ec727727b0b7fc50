"""The submissions that a branch adds or changes, read from git's objects and never from the working tree.

`kernelmark grade --changed` calls it. Trusted, over a branch that a stranger wrote. A submission is
`submissions/<problem>/<author>/<file>`; or, with files beside it, the one kernel named like its folder in
`submissions/<problem>/<author>/<name>/`. The author is the folder's name, whatever the file claims. Since the bytes
come from the commit's objects, a symbolic link is recognized and refused, and nothing of the branch (its settings,
problems or code) has to be checked out to grade it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path, PurePosixPath

from harness.errors import SubmissionError, UsageError, nearest
from harness.languages import LANGUAGES
from harness.submission import MAX_BESIDE, MAX_SOURCE_BYTES, Submission, language_of
from kernelmark.course.branch import changes, git
from kernelmark.course.known import Known
from kernelmark.course.several import Asked, Ready
from kernelmark.project.settings import Settings
from kernelmark.record.allowance import Allowance
from kernelmark.text.printing import say
from kernelmark.text.terminal import visible

_TEXTS = {".md", ".txt"}  # notes that an author may keep beside a kernel
_FOLDER = "040000"
_PLAIN = {"100644", "100755"}
_KINDS = {"120000": "a symbolic link", "160000": "a submodule"}


@dataclass(frozen=True)
class SubmittedFile:
    """One file that was added or changed: its path in the project, and git's mode and blob for it.

    `beside` has the other files of its folder, changed or not; such a submission counts as changed if one of them is.
    """

    path: str
    mode: str
    blob: str
    beside: tuple[SubmittedFile, ...] = ()
    in_own_folder: bool = False

    def place(self, settings: Settings) -> tuple[Path, str, str]:
        """The problem's directory, the author and the file's name.

        Raises:
            UsageError: the path is not `<folder>/<problem>/<author>/<file>`, or there is no such problem.
            SubmissionError: a file is a symbolic link, or otherwise not a regular file.
        """
        parts = _parts(settings, self.path)
        if len(parts) != (4 if self.in_own_folder else 3):
            author = f"{settings.submissions.as_posix()}/PROBLEM/AUTHOR"
            layout = f"{author}/FILE, or several files to {author}/NAME, one of them called NAME"
            raise UsageError(self.path, "is not where submissions belong", f"move it to {layout}")
        for each in (self, *self.beside):
            if each.mode not in _PLAIN:
                raise SubmissionError(each.path, f"is {_KINDS.get(each.mode, 'not a file')}", "submit the file itself")
        from kernelmark.project.problems import problem_directories

        known = {directory.name: directory for directory in problem_directories(settings)}
        if parts[0] not in known:
            raise UsageError(self.path, f"no such problem: {parts[0]}", nearest(parts[0], known))
        return known[parts[0]], parts[1], parts[-1]

    def read(self, settings: Settings, author: str, name: str) -> Submission:
        """The source and the files beside it as they were committed.

        Raises:
            SubmissionError: as for `Submission.read`.
        """
        if len(self.beside) > MAX_BESIDE:  # before git is asked for each
            raise SubmissionError(self.path, f"has {len(self.beside)} files beside it", f"use at most {MAX_BESIDE}")
        left = MAX_SOURCE_BYTES
        for each in (self, *self.beside):
            left -= int(git(settings.root, "cat-file", "-s", each.blob))
            if left < 0:
                what = f"{'with the files beside it ' if self.beside else ''}is larger than {MAX_SOURCE_BYTES:,} bytes"
                raise SubmissionError(self.path, what, "submit source, not data")
        language = language_of(PurePosixPath(self.path))
        source, *contents = (git(settings.root, "cat-file", "blob", each.blob) for each in (self, *self.beside))
        names = (PurePosixPath(each.path).name for each in self.beside)
        beside = dict(zip(names, contents, strict=True))
        return Submission.of(source, language, author=author, name=name, beside=beside)


def changed(settings: Settings, base: str, head: str) -> list[SubmittedFile]:
    """The submissions that `head` adds or changes since it branched from `base`, by path; a moved file counts.

    The folder's own README.md is not a submission. Nor is a text beside a kernel in an author's folder: it is named on
    stderr.

    Raises:
        UsageError: this is not a git repository, or it lacks one of the two commits or their common history.
    """
    folder = settings.submissions
    if folder.is_absolute():
        raise UsageError("submissions", f"{str(folder)!r} is absolute", "give a folder of the project")
    submitted, folders = [], dict[PurePosixPath, SubmittedFile | None]()
    for path, mode, blob, status in changes(settings.root, base, head, folder.as_posix()):
        own = PurePosixPath(path).parent
        if len(_parts(settings, path)) == 4 and own not in folders:
            folders[own] = _whole(settings, head, own)
        if folders.get(own) is None and status != "D" and _parts(settings, path) != ("README.md",):
            submitted.append(SubmittedFile(path, mode, blob))
    submitted += [each for each in folders.values() if each is not None]
    texts = [each for each in submitted if _is_text_beside_a_kernel(settings, head, each)]
    for text in texts:
        say(f"kernelmark: note: {visible(text.path)}: passed over, as it is not a kernel")
    return sorted((each for each in submitted if each not in texts), key=lambda each: each.path)


def _is_text_beside_a_kernel(settings: Settings, head: str, submitted: SubmittedFile) -> bool:
    path = PurePosixPath(submitted.path)
    if len(_parts(settings, submitted.path)) != 3 or path.suffix not in _TEXTS or submitted.mode not in _PLAIN:
        return False
    beside = _files(settings, head, path.parent)
    return any(PurePosixPath(each.path).suffix[1:] in LANGUAGES or each.mode == _FOLDER for each in beside)


def _whole(settings: Settings, head: str, folder: PurePosixPath) -> SubmittedFile | None:
    """The submission of several files that a folder holds; None if there is not exactly one file named like it."""
    files = _files(settings, head, folder)
    paths = {each: PurePosixPath(each.path) for each in files}
    own = [each for each, path in paths.items() if path.stem == folder.name and path.suffix[1:] in LANGUAGES]
    if len(own) != 1:
        return None
    return replace(own[0], beside=tuple(each for each in files if each != own[0]), in_own_folder=True)


def _files(settings: Settings, head: str, folder: PurePosixPath) -> list[SubmittedFile]:
    """What lies in a folder, changed or not."""
    files = []
    for entry in git(settings.root, "ls-tree", "-z", "--end-of-options", head, "--", f"{folder}/").split(b"\0")[:-1]:
        header, _, name = entry.partition(b"\t")
        mode, _, blob = header.decode().split(" ")
        files.append(SubmittedFile(name.decode("utf-8", "backslashreplace"), mode, blob))
    return files


def _parts(settings: Settings, path: str) -> tuple[str, ...]:
    """Of a path in the folder of submissions: the problem, the author, and so on."""
    return PurePosixPath(path).relative_to(settings.submissions.as_posix()).parts


def asked(
    settings: Settings,
    submitted: SubmittedFile,
    allowance: Allowance,
    known: Known | None = None,
    *,
    late: str | None,
    now: datetime,
    record: bool,
) -> Asked:
    """A submission as `several` grades it, for the command that began `now`; not again if its verdict is `known`.

    The limits a day hold even if nothing is recorded: then the record of the base says what was used.
    """

    def read() -> Ready:
        from kernelmark.grading.admission import admit, usual_s
        from kernelmark.grading.setup import PreparedJob

        directory, author, name = submitted.place(settings)
        team = settings.teams.of(author)
        if team is not None and author not in team.members:
            remedy = f"use a folder of your own; members: {', '.join(team.members)}"
            raise UsageError(submitted.path, f"is in a folder with the name of a team, {team.name}", remedy)
        submission = submitted.read(settings, author, name)
        job = PreparedJob.prepare(settings, directory, submission, author=author, moment=now)
        if known is not None and (same := known.same(submitted.path, job)):
            return Ready(job, None, known=same)
        if record:
            return Ready(job, admit(job, late, allowance))
        allowance.take(author, lambda: usual_s(job))
        return Ready(job, None)

    return Asked(submitted.path, read)
