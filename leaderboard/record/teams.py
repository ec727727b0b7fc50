"""Teams: several authors who rank as one.

The setting `[teams]` in `kernelmark.toml` defines them; the ranking, the daily limits and courses use them. Trusted;
pure. The ledger records authors only, so teams can change at any time without rewriting a line.
"""

from __future__ import annotations

from functools import cached_property
from typing import Self

from pydantic import BaseModel, ConfigDict, Field, RootModel, model_validator

from harness.submission import AUTHOR


class Team(BaseModel):
    """A team's name and its members, in order of name."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    members: tuple[str, ...]

    def includes(self, author: str) -> bool:
        """Whether an author's runs are the team's: a member's, and those recorded under the team's own name."""
        return author == self.name or author in self.members


class Teams(RootModel[dict[str, tuple[str, ...]]]):
    """All teams of a project: a team's members by its name.

    An author is in one team at most, and no team has the name of another team's member: its runs would be ambiguous.
    """

    model_config = ConfigDict(frozen=True)

    root: dict[str, tuple[str, ...]] = Field(default={})

    @model_validator(mode="after")
    def _every_author_ranks_once(self) -> Self:
        team_of: dict[str, str] = {}
        for name, members in self.root.items():
            for named in (name, *members):
                if not AUTHOR.fullmatch(named):
                    what = f"the team's name {name!r}" if named == name else f"{named!r}, a member of {name},"
                    raise ValueError(f"{what} cannot be an author's name; use letters, digits, '.', '_' and '-'")
            if not members:
                raise ValueError(f"{name} has no members")
            for member in members:
                if member in team_of:
                    twice = f"is in {name} twice" if team_of[member] == name else f"is in {team_of[member]} and {name}"
                    raise ValueError(f"{member} {twice}; an author is in one team, once")
                team_of[member] = name
        for name in self.root:
            if team_of.get(name, name) != name:
                raise ValueError(f"the team {name} is named like a member of {team_of[name]}; choose another name")
        return self

    def of(self, author: str) -> Team | None:
        """The team that an author's runs count for; None if the author is in none."""
        return self._by_author.get(author)

    def name_of(self, author: str) -> str:
        """The name that an author's runs rank under: the team's, else the author's own."""
        team = self._by_author.get(author)
        return author if team is None else team.name

    @cached_property
    def _by_author(self) -> dict[str, Team]:
        teams = [Team(name=name, members=tuple(sorted(members))) for name, members in self.root.items()]
        return {author: team for team in teams for author in (team.name, *team.members)}


NO_TEAMS = Teams({})


def shown(author: str, team: Team | None) -> str:
    """An author's name in a row: `ada`, or `quickfix (ada)` if she ranks for a team of that name."""
    return author if team is None or team.name == author else f"{team.name} ({author})"
