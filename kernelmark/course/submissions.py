"""The submissions to a course: a folder, or the zip archive of a learning platform, with a kernel per author or team.

`kernelmark grade PROBLEM HANDINS` calls it. Trusted, over files that strangers wrote: an archive is read in memory, and
no file beyond what a submission may have. Nothing is extracted.

The author is the folder of the kernel, or else the name of its file, without what a platform appends (`owner` says
what). A team's name counts as that of an author of the team, but not where the platform says that a person has it.
Authors who submitted no kernel, or only a folder, are listed too, so that no author is missing.
"""

from __future__ import annotations

import lzma
import struct
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from pathlib import Path, PurePosixPath

from harness.errors import SubmissionError, UsageError
from harness.files import outside
from harness.languages import LANGUAGES, known
from harness.problem import Problem
from harness.problem.schedule import Delay
from harness.submission import MAX_SOURCE_BYTES, Submission, language_of
from kernelmark.course.marks import Marked
from kernelmark.course.owner import Owner, authors_of
from kernelmark.course.report import GradingResult
from kernelmark.project.problems import find_directory, find_problem
from kernelmark.project.settings import Settings
from kernelmark.text.terminal import say, visible
from leaderboard.record.teams import NO_TEAMS, Team, Teams

_MOST_FILES = 20_000
_DEEPEST = 32  # folders below the one with all submissions; no kernel is looked for in deeper ones
_SHOWN = 4  # files that a message names
# What zipfile raises for an archive or a member that is damaged, encrypted, or compressed in a way that it cannot read;
# bz2 raises an OSError without a number.
_DAMAGE = (
    *(zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error, EOFError, RuntimeError, NotImplementedError),
    *(ValueError, OverflowError, MemoryError),
)
Moments = Callable[["CourseSubmission"], datetime | None]
"""When a submission was handed in; None if that is not known.

Raises:
    UsageError: what is known of it contradicts itself, or is not there.
"""


@dataclass(frozen=True)
class _File:
    """A file of a submission, or an empty folder."""

    path: PurePosixPath
    read: Callable[[int], bytes]
    """At most so many bytes of it."""
    is_folder: bool = False

    @property
    def owner(self) -> Owner:
        outermost, *inner = self.path.parts
        is_folder = bool(inner) or self.is_folder
        return Owner.of(outermost if is_folder else self.path.stem, is_folder=is_folder)

    @property
    def is_kernel(self) -> bool:
        return not self.is_folder and self.path.suffix.removeprefix(".") in LANGUAGES

    @property
    def has_owner(self) -> bool:
        """Whether it belongs to an author: a text at the top, next to all submissions, may be the teacher's own."""
        return self.is_kernel or self.is_folder or len(self.path.parts) > 1 or bool(self.owner.id)


@dataclass(frozen=True)
class CourseSubmission:
    """What one author submitted: normally one kernel."""

    author: str
    files: tuple[_File, ...]
    team: Team | None = None
    teammates: tuple[str, ...] = ()
    """The others of the author's team who submitted something."""
    names: tuple[str, ...] = ()
    """The names by which a table may mean this author: without the id too, if no one else has that name."""
    mates: tuple[tuple[str, Owner], ...] = ()
    """Others of the team whom the platform knows, though they submitted no kernel: their authors' names, and owners."""

    @property
    def owner(self) -> Owner:
        """The name and the id that the platform has."""
        return self.files[0].owner

    @property
    def kernels(self) -> tuple[_File, ...]:
        """Those of its files that are in a language of a submission."""
        return tuple(file for file in self.files if file.is_kernel)

    @property
    def authors(self) -> tuple[str, ...]:
        """The authors whose marks it decides: the whole team, unless several of its members submitted."""
        return (self.author,) if self.team is None or self.teammates else self.team.members

    def known_as(self, author: str) -> Owner:
        """The name and id that the platform has of an author; empty for a teammate who submitted nothing."""
        return dict([*self.mates, (self.author, self.owner)]).get(author, Owner(""))

    @property
    def path(self) -> str:
        """The kernel's file, or the first of several; without a kernel, the first file."""
        return str((self.kernels or self.files)[0].path)

    @property
    def marked_late(self) -> bool:
        """Whether the platform says in the name that it came late."""
        return any(kernel.owner.marked_late for kernel in self.kernels)

    def submission(self) -> Submission:
        """The kernel.

        Raises:
            SubmissionError: there is none, or several, a teammate handed in another, or it is not a valid submission,
                such as a damaged file.
            UsageError: it cannot be read, through no fault of its author.
        """
        if self.owner.ids:
            what = f"the name of {visible(self.path)} holds the ids {' and '.join(self.owner.ids)}"
            raise SubmissionError(self.author, what, "hand in a file whose own name has no id")
        if not self.kernels:
            found = [file for file in self.files if not file.is_folder]
            what = f"no kernel (found {_listed(found)})" if found else "no kernel (its folder is empty)"
            raise SubmissionError(self.author, what, f"its name must end in {known()}")
        if self.teammates:
            what = f"handed in, and so did {', '.join(self.teammates)} of the same team"
            raise SubmissionError(self.author, what, "leave one submission")
        if len(self.kernels) > 1:
            names = ", ".join(str(kernel.path) for kernel in self.kernels[:_SHOWN])
            raise SubmissionError(self.author, f"handed in {len(self.kernels)} kernels ({names})", "leave one")
        [kernel] = self.kernels
        source = kernel.read(MAX_SOURCE_BYTES + 1)
        return Submission.of(source, language_of(kernel.path), author=self.author, name=kernel.path.name)


def problem_of(settings: Settings, problem: str, place: Path, now: datetime) -> Problem:
    """The problem of the submissions in that place, as it is `now`.

    Raises:
        UsageError: there is none, or the two were swapped.
    """
    try:
        find_directory(settings, problem)
    except UsageError as missing:
        try:
            slug = find_directory(settings, place).name
        except UsageError:
            raise missing from None
        remedy = f"write `kernelmark grade {slug} {problem}`"
        raise UsageError("grade", "PROBLEM comes first, then HANDINS", remedy) from None
    return find_problem(settings, problem, now)


def submissions_in(place: Path, teams: Teams = NO_TEAMS) -> list[CourseSubmission]:
    """The submissions in a folder or a zip archive, by author; notes on stderr which files belong to no author.

    Raises:
        UsageError: it is neither, cannot be read, or holds no kernel.
    """
    files = [file for file in _files(place) if not _hidden(file.path)]
    full = {folder for file in files for folder in file.path.parents}
    files = _unwrapped([file for file in files if not file.is_folder or file.path not in full])
    if not any(file.is_kernel for file in files):
        raise UsageError(str(place), "holds no kernel", f"its files end in {known()}")
    by_author = _by_author(files, teams)
    by_team = _by_team(by_author, teams)
    present = sorted(author for authors in by_team.values() for author in authors)
    taken = {file.path for author in present for file in by_author[author]}
    if left := [file for file in files if file.path not in taken]:
        say(f"kernelmark: note: passed over what is not a kernel: {visible(_listed(left))}")
    names, found = _names(by_author, teams), []
    for author in present:
        team = teams.of(author)
        mates = [other for other in by_author if team and other != author and teams.of(other) == team]
        found.append(
            CourseSubmission(
                author,
                tuple(by_author[author]),
                team,
                tuple(other for other in by_team[teams.name_of(author)] if other != author),
                names[author],
                tuple((other, by_author[other][0].owner) for other in mates),
            )
        )
    return found


def _by_author(files: Iterable[_File], teams: Teams) -> dict[str, list[_File]]:
    """The files that have an owner, by author, in order of name; notes on stderr an author who cannot have the name
    that their file has, since that is what another author's id makes of their name.
    """
    owned = [file for file in files if file.has_owner]
    authors = authors_of((file.owner for file in owned), _without_member(teams))
    for owner, author in authors.items():
        if author not in (owner.author, owner.author_with_id):
            say(f"kernelmark: note: {visible(owner.name)} is graded as {author}, since {owner.author} is somebody else")
    by_author: dict[str, list[_File]] = {}
    for file in owned:
        by_author.setdefault(authors[file.owner], []).append(file)
    return dict(sorted(by_author.items()))


def _without_member(teams: Teams) -> list[str]:
    """The teams that no member is named like: no one whose id the platform has counts as a team because of a name."""
    return [name for name, members in teams.root.items() if name not in members]


def _by_team(by_author: Mapping[str, Sequence[_File]], teams: Teams) -> dict[str, list[str]]:
    """The authors who submitted something, by the name that they rank under.

    Beside the kernel of a teammate a text counts for nothing: then its author is left out.
    """
    with_kernel = {author for author, files in by_author.items() if any(file.is_kernel for file in files)}
    done = {teams.name_of(author) for author in with_kernel}
    together: dict[str, list[str]] = {}
    for author in by_author:
        if author in with_kernel or teams.name_of(author) not in done:
            together.setdefault(teams.name_of(author), []).append(author)
    return together


def _names(by_author: Mapping[str, Sequence[_File]], teams: Teams) -> dict[str, tuple[str, ...]]:
    """The names by which a table may mean an author: without the id too, if no one else has or is given that name."""
    plain = {author: Owner(files[0].owner.name).author for author, files in by_author.items()}
    count = Counter([*plain.values(), *(author for author, name in plain.items() if author != name)])
    count.update(_without_member(teams))
    return {author: (author, name) if count[name] == 1 else (author,) for author, name in plain.items()}


def marked(submitted: CourseSubmission, delay: Delay | None, graded: GradingResult) -> Iterator[Marked]:
    """The mark of every author whose mark a submission decides."""
    team = submitted.team.name if submitted.team else ""
    for author in submitted.authors:
        owner = submitted.known_as(author)
        yield Marked(author, owner.id, owner.name, team, delay, graded, owner.feedback_file or f"{author}.txt")


def _unwrapped(files: list[_File]) -> list[_File]:
    """The files without the one folder that an archive often holds everything in."""
    tops = {file.path.parts[0] for file in files if len(file.path.parts) > 1 or file.is_kernel}
    wrapper = next(iter(tops), "")
    if len(tops) != 1 or Owner.of(wrapper, is_folder=True).id:
        return files
    inside = [
        replace(file, path=file.path.relative_to(wrapper))
        for file in files
        if file.path.parents[-2:-1] == (PurePosixPath(wrapper),)
    ]
    if sum(file.is_kernel for file in inside) < 2 and not any(file.owner.id for file in inside):
        return files  # an author's own folder
    return inside + [file for file in files if file.path.parts[0] != wrapper]


def _listed(files: Sequence[_File]) -> str:
    more = f" and {len(files) - _SHOWN} more" if len(files) > _SHOWN else ""
    return ", ".join(file.path.name for file in files[:_SHOWN]) + more


def _hidden(path: PurePosixPath) -> bool:
    return any(part.startswith((".", "__MACOSX")) for part in path.parts)


def _files(place: Path) -> Iterator[_File]:
    if place.is_dir():
        yield from _in_folder(place)
        return
    try:
        with outside.opened(place, follow=True):
            archive = zipfile.ZipFile(place)
        members = archive.infolist()
    except (OSError, *_DAMAGE) as error:
        why = getattr(error, "strerror", None) or "is not a zip archive"
        raise UsageError(str(place), f"cannot be read ({why})", "name a folder, or a zip archive") from None
    if len(members) > _MOST_FILES:
        raise UsageError(str(place), f"holds more than {_MOST_FILES:,} files")
    for member in members:
        path = PurePosixPath(member.filename)
        if path.parts:
            yield _File(path, partial(_member, archive, member), is_folder=member.is_dir())


def _in_folder(folder: Path) -> Iterator[_File]:
    try:
        for inner, _, names in outside.walked(folder, most=_MOST_FILES, deepest=_DEEPEST):
            if inner != folder:
                yield _File(PurePosixPath(inner.relative_to(folder)), partial(_content, inner), is_folder=True)
            for name in names:
                file = inner / name
                if not file.is_symlink():
                    yield _File(PurePosixPath(file.relative_to(folder)), partial(_content, file))
    except outside.TooLarge:
        raise UsageError(str(folder), f"holds more than {_MOST_FILES:,} files") from None


def _content(file: Path, limit: int) -> bytes:
    try:
        with outside.opened(file) as opened:
            return opened.read(limit)
    except outside.RefusedFile as error:
        raise SubmissionError(str(file), f"cannot be read ({error.strerror})", "hand in the file itself") from None
    except OSError as error:
        raise UsageError(str(file), f"cannot be read ({error.strerror})") from None


def _member(archive: zipfile.ZipFile, member: zipfile.ZipInfo, limit: int) -> bytes:
    try:
        with archive.open(member) as opened:
            return opened.read(limit)
    except (OSError, *_DAMAGE) as error:
        if isinstance(error, OSError) and error.errno:  # of the archive, not of what one author put into it
            raise UsageError(str(archive.filename), f"cannot be read ({error.strerror})") from None
        remedy = "hand it in again, not compressed or encrypted"
        raise SubmissionError(member.filename, f"cannot be read from the archive ({error})", remedy) from None
