"""The hand-ins of a course: a folder, or the zip archive of a learning platform, with one kernel an author or team.

`kernelmark grade PROBLEM HANDINS` calls it. Trusted, over files that strangers wrote: an archive is read in memory, and
no file beyond what a submission may have. Nothing is extracted.

The author is the folder that the kernel lies in, or else the name of its file, without what Moodle and Canvas append
(`Ada Lovelace_31415_assignsubmission_file/softmax.py`, `lovelaceada_LATE_31415_92653_softmax.py`). A team's name counts
as that of an author of the team.
"""

from __future__ import annotations

import os
import re
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path, PurePosixPath

from harness.errors import UsageError
from harness.languages import LANGUAGES, known
from harness.submission import MAX_SOURCE_BYTES, Submission, language_of
from kernelmark.commands.several import Asked, Ready
from kernelmark.services.settings import Settings, name_from
from leaderboard.record.teams import NO_TEAMS, Team, Teams

_MOST_FILES = 20_000
_APPENDED = re.compile(r"_(LATE_)?\d{4,}(_.*)?", re.DOTALL)
Moments = Callable[["HandIn"], datetime | None]
"""When each was handed in; None if that is not known.

Raises:
    UsageError: what is known of it contradicts itself, or is not there.
"""


@dataclass(frozen=True)
class _File:
    path: PurePosixPath
    read: Callable[[int], bytes]
    """At most so many bytes of it."""


@dataclass(frozen=True)
class HandIn:
    """What one author handed in: normally one kernel."""

    author: str
    kernels: tuple[_File, ...]
    team: Team | None = None
    teammates: tuple[str, ...] = ()
    """Who else of the author's team handed something in."""

    @property
    def authors(self) -> tuple[str, ...]:
        """Whose marks it decides: those of the whole team, unless several of it handed in."""
        return (self.author,) if self.team is None or self.teammates else self.team.members

    @property
    def path(self) -> str:
        """The kernel's file, or the first of several."""
        return str(self.kernels[0].path)

    @property
    def marked_late(self) -> bool:
        """Whether the platform says in the name that it came late, as Canvas does."""
        found = (_APPENDED.search(_owner(each.path)) for each in self.kernels)
        return any(each is not None and each[1] for each in found)

    def submission(self) -> Submission:
        """The kernel.

        Raises:
            UsageError: there are several, a teammate handed in another, or it is not a valid submission.
        """
        if self.teammates:
            what = f"handed in, and so did {', '.join(self.teammates)} of the same team"
            raise UsageError(self.author, what, "leave one hand-in")
        if len(self.kernels) > 1:
            names = ", ".join(str(each.path) for each in self.kernels[:4])
            raise UsageError(self.author, f"handed in {len(self.kernels)} kernels ({names})", "leave one")
        [kernel] = self.kernels
        source = kernel.read(MAX_SOURCE_BYTES + 1)
        return Submission.of(source, language_of(kernel.path), author=self.author, name=kernel.path.name)


def handed_in(place: Path, teams: Teams = NO_TEAMS) -> list[HandIn]:
    """The hand-ins in a folder or a zip archive, by author. Files in no language of a submission are left out.

    Raises:
        UsageError: it is neither, cannot be read, or holds no kernel.
    """
    files = [
        each for each in _files(place) if each.path.suffix.removeprefix(".") in LANGUAGES and not _hidden(each.path)
    ]
    if not files:
        raise UsageError(str(place), "holds no kernel", f"its files end in {known()}")
    tops = {each.path.parts[0] for each in files}
    if len(tops) == 1 and len(files) > 1 and all(len(each.path.parts) > 1 for each in files):
        [wrapper] = tops  # an archive often holds one folder with everything
        files = [_File(each.path.relative_to(wrapper), each.read) for each in files]
    kernels: dict[str, list[_File]] = {}
    for each in files:
        kernels.setdefault(author_of(_owner(each.path)), []).append(each)
    together: dict[str, list[str]] = {}
    for author in sorted(kernels):
        together.setdefault(teams.name_of(author), []).append(author)
    return [
        HandIn(
            author,
            tuple(kernels[author]),
            teams.of(author),
            tuple(each for each in together[teams.name_of(author)] if each != author),
        )
        for author in sorted(kernels)
    ]


def asked(
    settings: Settings,
    problem: str,
    hand_in: HandIn,
    *,
    late: str | None,
    moments: Moments,
    now: datetime,
    record: bool,
) -> Asked:
    """A hand-in as `several` grades it, for the command that began `now`; it is exempt from the limits a day, since an
    organizer wants it graded.
    """

    def read() -> Ready:
        from kernelmark.services.prepared import PreparedJob

        handed_in = moments(hand_in)
        job = PreparedJob.prepare(settings, problem, hand_in.submission(), author=hand_in.author, moment=now)
        return Ready(job, job.admit(late, handed_in=handed_in, exempt=True) if record else None, exempt=True)

    return Asked(hand_in.path, read)


def author_of(name: str) -> str:
    """The author whose folder or file has this name, on a learning platform or elsewhere."""
    return name_from(_APPENDED.sub("", name)) or name_from(name) or "anonymous"


def _owner(path: PurePosixPath) -> str:
    return path.parts[0] if len(path.parts) > 1 else path.stem


def _hidden(path: PurePosixPath) -> bool:
    return any(part.startswith((".", "__MACOSX")) for part in path.parts)


def _files(place: Path) -> Iterator[_File]:
    if place.is_dir():
        yield from _in_folder(place)
        return
    try:
        archive = zipfile.ZipFile(place)
        members = archive.infolist()
    except (OSError, zipfile.BadZipFile) as error:
        why = error.strerror if isinstance(error, OSError) else "is not a zip archive"
        raise UsageError(str(place), f"cannot be read ({why})", "name a folder, or a zip archive") from None
    if len(members) > _MOST_FILES:
        raise UsageError(str(place), f"holds more than {_MOST_FILES:,} files")
    for member in members:
        path = PurePosixPath(member.filename)
        if not member.is_dir() and path.parts:
            yield _File(path, partial(_member, archive, member))


def _in_folder(folder: Path) -> Iterator[_File]:
    found = 0
    for inner, _, names in os.walk(folder):
        found += len(names)
        if found > _MOST_FILES:
            raise UsageError(str(folder), f"holds more than {_MOST_FILES:,} files")
        for name in sorted(names):
            file = Path(inner, name)
            if not file.is_symlink():
                yield _File(PurePosixPath(file.relative_to(folder)), partial(_content, file))


def _content(file: Path, limit: int) -> bytes:
    try:
        with file.open("rb") as opened:
            return opened.read(limit)
    except OSError as error:
        raise UsageError(str(file), f"cannot be read ({error.strerror})") from None


def _member(archive: zipfile.ZipFile, member: zipfile.ZipInfo, limit: int) -> bytes:
    try:
        with archive.open(member) as opened:
            return opened.read(limit)
    except (OSError, RuntimeError, NotImplementedError, zipfile.BadZipFile, EOFError) as error:
        raise UsageError(member.filename, f"cannot be read from the archive ({error})") from None
