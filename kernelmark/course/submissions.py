"""The submissions to a course: a folder, or the zip archive of a learning platform, with a kernel per author or team.

`kernelmark grade PROBLEM HANDINS` calls it. Trusted, over files that strangers wrote: an archive is read in memory, and
no file is read beyond the size of a submission. Nothing is extracted.

The author is the name of the kernel's folder, or else that of its file, without what a platform appends (see `owner`).
The name of a team counts as an author of the team, unless the platform says that it is a person's name. Authors who
submitted no kernel, or only a folder, are listed as well, so that no author is missing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path

from harness.errors import SubmissionError, UsageError
from harness.languages import known
from harness.problem import Problem
from harness.problem.schedule import Delay
from harness.submission import Submission
from kernelmark.course.files import CourseFile, files_in
from kernelmark.course.kernel import ANY, ChosenKernel, Wanted, chosen, listed
from kernelmark.course.layouts import arranged
from kernelmark.course.mark import Mark
from kernelmark.course.owner import Owner, authors_of, with_hash
from kernelmark.course.points import Marking
from kernelmark.course.report import GradingResult
from kernelmark.course.roster import NOBODY, Person, Roster
from kernelmark.project.problems import find_directory, find_problem
from kernelmark.project.settings import Settings
from kernelmark.text.terminal import say, visible
from leaderboard.record.teams import NO_TEAMS, Team, Teams

_ARCHIVES = 4  # how many archives of one author are opened
_SHOWN = 3  # how many folders a message names


@dataclass(frozen=True)
class CourseSubmission:
    """What one author submitted: normally one kernel."""

    author: str
    files: tuple[CourseFile, ...]
    team: Team | None = None
    teammates: tuple[str, ...] = ()
    """Other members of the author's team who submitted something."""
    names: tuple[str, ...] = ()
    """The names by which a table may refer to this author; one without the id only if nobody else has that name."""
    mates: tuple[tuple[str, Owner], ...] = ()
    """Other members of the team whom the platform knows, with their authors' names, even if they submitted nothing."""
    wanted: Wanted = ANY
    """How to recognize the kernel among the files."""
    person: Person | None = None
    """The author's row in the roster."""

    @property
    def owner(self) -> Owner:
        """The author's name and id on the platform, or else those in the roster."""
        return self.files[0].owner if self.files[0].owner.id or self.person is None else self.person.owner

    @cached_property
    def chosen(self) -> ChosenKernel:
        """The kernel among its files, and the files that it uses; raises as `submission` does."""
        if self.owner.ids:
            what = f"the name of {visible(str(self.files[0].path))} holds the ids {' and '.join(self.owner.ids)}"
            raise SubmissionError(self.author, what, "hand in a file whose own name has no id")
        return chosen(self.author, self.files, self.wanted)

    @property
    def authors(self) -> tuple[str, ...]:
        """The authors whose mark it decides: the whole team, unless several members submitted something."""
        return (self.author,) if self.team is None or self.teammates else self.team.members

    def marks(self, delay: Delay | None, graded: GradingResult, marking: Marking | None) -> list[Mark]:
        """The mark of every author whose mark it decides, the submitter's or the team's."""
        team, owners = self.team.name if self.team else "", dict([*self.mates, (self.author, self.owner)])
        found = []
        for author in self.authors:
            owner = owners.get(author, Owner(""))  # the platform may not know a teammate who submitted nothing
            file = owner.feedback_file or f"{author}.txt"
            found.append(Mark(author, owner.id, owner.name, team, delay, graded, file, self.remarks, marking))
        return found

    @cached_property
    def path(self) -> str:
        """The kernel's file; if there are several kernels, the first of them; without a kernel, the first file."""
        with suppress(UsageError):
            return str(self.chosen.file.path)
        return str(next((file for file in self.files if file.language), self.files[0]).path)

    @property
    def remarks(self) -> tuple[str, ...]:
        """Remarks for the author on how the kernel was submitted; none if it cannot be graded."""
        try:
            return self.chosen.remarks
        except UsageError:
            return ()

    @property
    def marked_late(self) -> bool:
        """Whether the platform marked it as late in its name."""
        return any(file.owner.marked_late for file in self.files if file.language)

    def submission(self) -> Submission:
        """The kernel with the files that it uses.

        Raises:
            SubmissionError: there is no kernel or more than one, a teammate submitted another one, or it is not a valid
                submission.
            UsageError: it cannot be read, which is not the author's fault.
        """
        kernel, source, beside, _ = self.chosen
        if self.teammates:
            what = f"handed in, and so did {', '.join(self.teammates)} of the same team"
            raise SubmissionError(self.author, what, "leave one submission")
        submission = Submission.of(source, kernel.language, author=self.author, name=kernel.name, beside=beside)
        if not source.strip():
            raise SubmissionError(self.author, f"{visible(kernel.name)} is empty", "hand in the file with the kernel")
        return submission


def problem_of(settings: Settings, problem: str, place: Path, now: datetime) -> Problem:
    """The problem with this slug or directory, as it is `now`.

    Raises:
        UsageError: there is none, or problem and place were swapped.
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


def submissions_in(
    place: Path, teams: Teams = NO_TEAMS, wanted: Wanted = ANY, roster: Roster = NOBODY
) -> list[CourseSubmission]:
    """The submissions in a folder or a zip archive, by author. A note on stderr lists files that belong to no author.

    Raises:
        UsageError: it is neither, cannot be read, or holds no kernel.
    """
    files, roster = arranged(files_in(place), place.name, roster, teams)
    teams = roster.teams(teams)
    if not any(file.language or file.is_archive for file in files):
        links = [file for file in files if file.is_link]
        what = f"holds no kernel, but links, which are not followed ({visible(listed(links))})" if links else ""
        raise UsageError(str(place), what or "holds no kernel", f"its files end in {known()}")
    by_author = _by_author(files, teams, roster)
    by_team = _by_team(by_author, teams)
    present = sorted(author for authors in by_team.values() for author in authors)
    taken = {file.path for author in present for file in by_author[author]}
    if left := [file for file in files if file.path not in taken]:
        say(f"kernelmark: note: passed over what is not a kernel: {visible(listed(left))}")
    names, found = _names(by_author, teams), []
    for author in present:
        team = teams.of(author)
        owners = {other: person.owner for other, person in roster.authors.items()}
        owners |= {other: own[0].owner for other, own in by_author.items() if own[0].owner.id or other not in owners}
        mates = [(other, owner) for other, owner in owners.items() if team and other != author and team.includes(other)]
        found.append(
            CourseSubmission(
                author,
                tuple(by_author[author]),
                team,
                tuple(other for other in by_team[teams.name_of(author)] if other != author),
                names[author],
                tuple(mates),
                wanted,
                roster.authors.get(author),
            )
        )
    _refuse_unknown(found)
    return found


def _refuse_unknown(submissions: Sequence[CourseSubmission]) -> None:
    """Refuse folders that contain several folders with kernels each: they probably belong to several authors."""
    folders = set[str]()
    for submission in submissions:
        folders = {file.path.parts[1] for file in submission.files if file.language and len(file.path.parts) > 2}
        with suppress(UsageError):
            if submission.owner.id or len(folders) < 2 or submission.chosen:
                return
    if len(submissions) > 1:
        some = visible(", ".join(sorted(folders)[:_SHOWN]))
        what = f"{submissions[-1].author} holds several folders with kernels ({some}), and so do the others"
        raise UsageError("the layout is not known", what, "name a folder that has one folder for each author")


def _by_author(files: Iterable[CourseFile], teams: Teams, roster: Roster) -> dict[str, list[CourseFile]]:
    """The files that have an owner, by author in the order of names. A note on stderr says which author gets another
    name, since somebody else has the name of their file.
    """
    owned = [file for file in files if file.has_owner]
    people = _people({file.owner for file in owned}, roster)
    others = (file.owner for file in owned if file.owner not in people)
    authors = authors_of(others, [*_without_member(teams), *roster.authors])
    # The names of several people may be reduced to one, as Jörg and Jorg are.
    without_ids = {(owner.full_name, author) for owner, author in authors.items() if not owner.id}
    count = Counter(author for _, author in without_ids)
    for owner, author in authors.items():
        is_another = not owner.id and count[author] > 1 and owner.full_name != author
        if author in roster.authors or is_another:
            authors[owner] = author = with_hash(owner, author)
        if author not in (owner.author, owner.author_with_id):
            say(f"kernelmark: note: {visible(owner.name)} is graded as {author}, since {owner.author} is somebody else")
    authors |= {owner: person.author for owner, person in people.items()}
    by_author: dict[str, list[CourseFile]] = {}
    for file in owned:
        by_author.setdefault(authors[file.owner], []).append(file)
    return {author: _opened(own) for author, own in sorted(by_author.items())}


def _people(owners: Collection[Owner], roster: Roster) -> dict[Owner, Person]:
    """The people of the roster among the owners. A name alone counts only if no other owner has that person's id."""
    ids = {owner.id for owner in owners} - {""}
    found = ((owner, roster.of(owner)) for owner in owners)
    return {owner: person for owner, person in found if person is not None and (owner.id or person.owner.id not in ids)}


def _opened(files: list[CourseFile]) -> list[CourseFile]:
    """An author's files; if there is no kernel among them, also the files in their archives."""
    if any(file.language for file in files):
        return files
    archives = [file for file in files if file.is_archive]
    return files + [inner for archive in archives[:_ARCHIVES] for inner in archive.inside()]


def _without_member(teams: Teams) -> list[str]:
    """The teams whose name is not that of a member. Nobody with an id on the platform may have such a name."""
    return [name for name, members in teams.root.items() if name not in members]


def _by_team(by_author: Mapping[str, Sequence[CourseFile]], teams: Teams) -> dict[str, list[str]]:
    """The authors who submitted something, by the name under which they rank.

    An author who submitted no kernel is left out if a teammate submitted one.
    """
    with_kernel = {author for author, files in by_author.items() if any(file.language for file in files)}
    done = {teams.name_of(author) for author in with_kernel}
    together: dict[str, list[str]] = {}
    for author in by_author:
        if author in with_kernel or teams.name_of(author) not in done:
            together.setdefault(teams.name_of(author), []).append(author)
    return together


def _names(by_author: Mapping[str, Sequence[CourseFile]], teams: Teams) -> dict[str, tuple[str, ...]]:
    """The names by which a table may refer to an author; one without the id only if it refers to nobody else."""
    plain = {author: Owner(files[0].owner.name).author for author, files in by_author.items()}
    count = Counter([*plain.values(), *(author for author, name in plain.items() if author != name)])
    count.update(_without_member(teams))
    return {author: (author, name) if count[name] == 1 else (author,) for author, name in plain.items()}
