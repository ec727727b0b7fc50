"""The list of everyone in a course, for `kernelmark grade PROBLEM HANDINS --roster FILE`. Trusted.

The CSV file has a row for each person, and any of the columns `author` (the name on the board), `name` and `id` (those
of the learning platform), `team`, and `extension` (a later deadline for this person, or how much later).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cached_property
from pathlib import Path

from pydantic import ValidationError

from harness.errors import UsageError
from harness.problem import Problem
from harness.problem.schedule import length
from kernelmark.course.mark import Mark
from kernelmark.course.owner import Owner, authors_of, whose
from kernelmark.course.points import Marking
from kernelmark.course.report import GradingResult
from kernelmark.project.settings import name_from
from kernelmark.text import spreadsheet
from leaderboard.record.teams import Team, Teams


@dataclass(frozen=True)
class Person:
    """One row: the author's name on the board, the person's name and id on the platform, and exceptions."""

    author: str
    owner: Owner
    team: str = ""
    extension: timedelta | datetime | None = None

    def absent(self, team: Team | None, marking: Marking | None) -> Mark:
        """The mark of a person who submitted nothing."""
        nothing = GradingResult("", UsageError.exit_code, "handed in nothing", by_author=True)
        name, file = team.name if team else "", f"{self.author}.txt"
        return Mark(self.author, self.owner.id, self.owner.name, name, None, nothing, file, marking=marking)

    def problem(self, problem: Problem) -> Problem:
        """The problem with this person's deadline."""
        if self.extension is None or problem.deadline is None:
            return problem
        own = self.extension if isinstance(self.extension, datetime) else problem.deadline + self.extension
        return problem.model_copy(update={"deadline": max(problem.deadline, own)})


@dataclass(frozen=True)
class Roster:
    """All people of a course, each with a unique author's name and id."""

    people: tuple[Person, ...] = ()

    @cached_property
    def authors(self) -> dict[str, Person]:
        """The people by author's name."""
        return {person.author: person for person in self.people}

    def of(self, owner: Owner) -> Person | None:
        """The person with this id, or the only person with this name; names do not count if both sides have an id."""
        if by_id := [person for person in self.people if owner.id and person.owner.id == owner.id]:
            return by_id[0]
        names = {owner.author, owner.name.casefold()}
        without_ids = [person for person in self.people if not (owner.id and person.owner.id)]
        named = [person for person in without_ids if names & _names(person)]
        return named[0] if len(named) == 1 else None

    def teams(self, known: Teams) -> Teams:
        """The teams of the settings and those of the roster together.

        Raises:
            UsageError: they contradict each other.
        """
        own: dict[str, list[str]] = {}
        for person in self.people:
            if person.team:
                own.setdefault(person.team, []).append(person.author)
        try:
            return Teams({**known.root, **{name: tuple(members) for name, members in own.items()}})
        except ValidationError as error:
            why = error.errors()[0]["msg"].removeprefix("Value error, ")
            raise UsageError("--roster", why, "say the same in [teams] of kernelmark.toml") from None


NOBODY = Roster()


def read(file: Path, problem: Problem) -> Roster:
    """The people in a CSV file.

    Raises:
        UsageError: it cannot be read, has no rows or none of the columns that name people, or a row is invalid.
    """
    people, seen, rows = list[Person](), set[str](), list[tuple[str, dict[str, str], str, Owner]]()
    for where, cells in spreadsheet.read(file):
        author, owner = whose(cells)
        rows.append((where, cells, name_from(author), replace(owner, name=owner.name or author)))
    if not rows:
        raise UsageError(str(file), "has no rows", "give each person one row, or leave out --roster")
    authors = authors_of(owner for *_, owner in rows)
    for where, cells, author, owner in rows:
        if not owner.name and not owner.id:
            raise UsageError(where, "names nobody", "give one of the columns author, name and id")
        author = author or authors[owner]
        for name in (author, *([f"the id {owner.id}"] if owner.id else [])):
            if name in seen:
                raise UsageError(where, f"names {name} again", "give each person one row, and a name in `author`")
            seen.add(name)
        extension = _extension(cells.get("extension", ""), where, problem)
        people.append(Person(author, owner, name_from(cells.get("team", "")), extension))
    return Roster(tuple(people))


def _names(person: Person) -> set[str]:
    owner = person.owner
    return {person.author, owner.id, owner.author, owner.name.casefold()} - {""}


def _extension(text: str, where: str, problem: Problem) -> timedelta | datetime | None:
    try:
        if not text:
            return None
        if "-" not in text:
            return length(text)
        moment = datetime.fromisoformat(text)
        zone = problem.deadline.tzinfo if problem.deadline else None
        return moment if moment.tzinfo else moment.replace(tzinfo=zone)
    except ValueError:
        remedy = "write how much longer, like 2d or 1h30m, or until when, like 2027-01-31T23:59:00+01:00"
        raise UsageError(where, f"{text!r:.80} is no extension", remedy) from None
