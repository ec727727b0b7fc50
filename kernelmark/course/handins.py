"""The hand-ins of a course: a folder, or the zip archive of a learning platform, with one kernel an author or team.

`kernelmark grade PROBLEM HANDINS` calls it. Trusted, over files that strangers wrote: an archive is read in memory, and
no file beyond what a submission may have. Nothing is extracted.

The author is the folder that the kernel lies in, or else the name of its file, without what a platform appends
(`owner` says what). A team's name counts as that of an author of the team, but not where the
platform says that a person has it. Whoever handed in no kernel, or only a folder, has a hand-in too, so that nobody is
missing.
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
from kernelmark.course.known import Known
from kernelmark.course.owner import Owner, authors_of
from kernelmark.course.several import Asked, Ready
from kernelmark.project.settings import Settings
from kernelmark.text.marks import Marked
from kernelmark.text.printing import say
from kernelmark.text.report import Graded
from kernelmark.text.terminal import visible
from leaderboard.record.teams import NO_TEAMS, Team, Teams

_MOST_FILES = 20_000
_DEEPEST = 32  # folders below the one with all hand-ins; no kernel is looked for in deeper ones
_SHOWN = 4  # files that a message names
# What zipfile raises for an archive or a member that is damaged, encrypted, or compressed in a way that it cannot read;
# bz2 raises an OSError without a number.
_DAMAGE = (
    *(zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error, EOFError, RuntimeError, NotImplementedError),
    *(ValueError, OverflowError, MemoryError),
)
Moments = Callable[["HandIn"], datetime | None]
"""When each was handed in; None if that is not known.

Raises:
    UsageError: what is known of it contradicts itself, or is not there.
"""


@dataclass(frozen=True)
class _File:
    """A file of a hand-in, or a folder in which nothing was handed in."""

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
        """Whether it is somebody's: a text that lies beside all hand-ins may be the teacher's own."""
        return self.is_kernel or self.is_folder or len(self.path.parts) > 1 or bool(self.owner.id)


@dataclass(frozen=True)
class HandIn:
    """What one author handed in: normally one kernel."""

    author: str
    files: tuple[_File, ...]
    team: Team | None = None
    teammates: tuple[str, ...] = ()
    """Who else of the author's team handed something in."""
    names: tuple[str, ...] = ()
    """As which author a table may name it: by the name alone too, if nobody else has it."""
    mates: tuple[tuple[str, Owner], ...] = ()
    """Others of the team whom the platform knows, though they handed in no kernel: as authors, and as it has them."""

    @property
    def owner(self) -> Owner:
        """The name and the id that the platform has."""
        return self.files[0].owner

    @property
    def kernels(self) -> tuple[_File, ...]:
        """Those of its files that are in a language of a submission."""
        return tuple(each for each in self.files if each.is_kernel)

    @property
    def authors(self) -> tuple[str, ...]:
        """Whose marks it decides: those of the whole team, unless several of it handed in."""
        return (self.author,) if self.team is None or self.teammates else self.team.members

    def known_as(self, author: str) -> Owner:
        """What the platform has of an author; nothing for a teammate who handed in nothing."""
        return dict([*self.mates, (self.author, self.owner)]).get(author, Owner(""))

    @property
    def path(self) -> str:
        """The kernel's file, or the first of several; without a kernel, the first file."""
        return str((self.kernels or self.files)[0].path)

    @property
    def marked_late(self) -> bool:
        """Whether the platform says in the name that it came late."""
        return any(each.owner.marked_late for each in self.kernels)

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
            found = [each for each in self.files if not each.is_folder]
            what = f"no kernel (found {_listed(found)})" if found else "no kernel (its folder is empty)"
            raise SubmissionError(self.author, what, f"its name must end in {known()}")
        if self.teammates:
            what = f"handed in, and so did {', '.join(self.teammates)} of the same team"
            raise SubmissionError(self.author, what, "leave one hand-in")
        if len(self.kernels) > 1:
            names = ", ".join(str(each.path) for each in self.kernels[:_SHOWN])
            raise SubmissionError(self.author, f"handed in {len(self.kernels)} kernels ({names})", "leave one")
        [kernel] = self.kernels
        source = kernel.read(MAX_SOURCE_BYTES + 1)
        return Submission.of(source, language_of(kernel.path), author=self.author, name=kernel.path.name)


def problem_of(settings: Settings, problem: str, place: Path, now: datetime) -> Problem:
    """The problem of the hand-ins in that place, as it is `now`.

    Raises:
        UsageError: there is none, or the two were swapped.
    """
    from kernelmark.project.problems import find_directory, find_problem

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


def handed_in(place: Path, teams: Teams = NO_TEAMS) -> list[HandIn]:
    """The hand-ins in a folder or a zip archive, by author; says on stderr which files are nobody's.

    Raises:
        UsageError: it is neither, cannot be read, or holds no kernel.
    """
    files = _unwrapped(_without_full_folders([each for each in _files(place) if not _hidden(each.path)]))
    if not any(each.is_kernel for each in files):
        raise UsageError(str(place), "holds no kernel", f"its files end in {known()}")
    of = _by_author(files, teams)
    by_team = _by_team(of, teams)
    present = sorted(author for authors in by_team.values() for author in authors)
    _say_what_is_left(files, [each for author in present for each in of[author]])
    names = _names(of, teams)
    return [
        HandIn(
            author,
            tuple(of[author]),
            team := teams.of(author),
            tuple(each for each in by_team[teams.name_of(author)] if each != author),
            names[author],
            tuple((each, of[each][0].owner) for each in of if team and each != author and teams.of(each) == team),
        )
        for author in present
    ]


def _without_full_folders(files: Sequence[_File]) -> list[_File]:
    full = {folder for each in files for folder in each.path.parents}
    return [each for each in files if not each.is_folder or each.path not in full]


def _by_author(files: Iterable[_File], teams: Teams) -> dict[str, list[_File]]:
    """Those files that are somebody's, by author, in order of name; says who is called as somebody else's id makes
    that one's name.
    """
    owned = [each for each in files if each.has_owner]
    authors = authors_of((each.owner for each in owned), _without_member(teams))
    for owner, author in authors.items():
        if author not in (owner.author, owner.author_with_id):
            say(f"kernelmark: note: {visible(owner.name)} is graded as {author}, since {owner.author} is somebody else")
    of: dict[str, list[_File]] = {}
    for each in owned:
        of.setdefault(authors[each.owner], []).append(each)
    return dict(sorted(of.items()))


def _without_member(teams: Teams) -> list[str]:
    """The teams whose name is no member's: nobody of whom the platform has an id counts as one because of a name."""
    return [name for name, members in teams.root.items() if name not in members]


def _by_team(of: Mapping[str, Sequence[_File]], teams: Teams) -> dict[str, list[str]]:
    """The authors who handed something in, by the name that they rank under.

    A text says nothing beside the kernel of a teammate: then its author is left out.
    """
    with_kernel = {author for author, files in of.items() if any(each.is_kernel for each in files)}
    done = {teams.name_of(author) for author in with_kernel}
    together: dict[str, list[str]] = {}
    for author in of:
        if author in with_kernel or teams.name_of(author) not in done:
            together.setdefault(teams.name_of(author), []).append(author)
    return together


def _names(of: Mapping[str, Sequence[_File]], teams: Teams) -> dict[str, tuple[str, ...]]:
    """As which author a table may name each: by the name without the id too, if nobody else has it, or is called so."""
    plain = {author: Owner(files[0].owner.name).author for author, files in of.items()}
    count = Counter([*plain.values(), *(author for author, name in plain.items() if author != name)])
    count.update(_without_member(teams))
    return {author: (author, name) if count[name] == 1 else (author,) for author, name in plain.items()}


def _say_what_is_left(files: Iterable[_File], taken: Iterable[_File]) -> None:
    paths = {each.path for each in taken}
    if left := [each for each in files if each.path not in paths]:
        say(f"kernelmark: note: passed over what is not a kernel: {visible(_listed(left))}")


def asked(
    settings: Settings,
    problem: str,
    hand_in: HandIn,
    known: Known | None = None,
    *,
    late: str | None,
    moments: Moments,
    now: datetime,
    record: bool,
) -> Asked:
    """A hand-in as `several` grades it, for the command that began `now`, and not again if its verdict is `known`; it
    is exempt from the limits a day, since an organizer wants it graded.
    """

    def read() -> Ready:
        from kernelmark.grading.admission import admit
        from kernelmark.grading.setup import PreparedJob

        handed_in = moments(hand_in)
        job = PreparedJob.prepare(settings, problem, hand_in.submission(), author=hand_in.author, moment=now)
        if known is not None and (same := known.same(hand_in.path, job)):
            return Ready(job, None, known=same)
        return Ready(job, admit(job, late, handed_in=handed_in, exempt=True) if record else None, exempt=True)

    return Asked(hand_in.path, read)


def marked(hand_in: HandIn, delay: Delay | None, graded: Graded) -> Iterator[Marked]:
    """What became of a hand-in, for each author whose mark it decides."""
    team = hand_in.team.name if hand_in.team else ""
    for author in hand_in.authors:
        owner = hand_in.known_as(author)
        yield Marked(author, owner.id, owner.name, team, delay, graded, owner.feedback_file or f"{author}.txt")


def _unwrapped(files: list[_File]) -> list[_File]:
    """The files without the one folder that an archive often holds everything in."""
    tops = {each.path.parts[0] for each in files if len(each.path.parts) > 1 or each.is_kernel}
    wrapper = next(iter(tops), "")
    if len(tops) != 1 or Owner.of(wrapper, is_folder=True).id:
        return files
    inside = [
        replace(each, path=each.path.relative_to(wrapper))
        for each in files
        if each.path.parents[-2:-1] == (PurePosixPath(wrapper),)
    ]
    if sum(each.is_kernel for each in inside) < 2 and not any(each.owner.id for each in inside):
        return files  # an author's own folder
    return inside + [each for each in files if each.path.parts[0] != wrapper]


def _listed(files: Sequence[_File]) -> str:
    """The names of files for a message."""
    more = f" and {len(files) - _SHOWN} more" if len(files) > _SHOWN else ""
    return ", ".join(each.path.name for each in files[:_SHOWN]) + more


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
