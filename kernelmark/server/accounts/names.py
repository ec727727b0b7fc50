"""The names that accounts and teams may have. Accounts and invitations call it.

Names are the same if they differ in case, `.`, `_` and `-` alone, so that nobody passes for somebody else.
"""

from __future__ import annotations

from typing import NamedTuple

from sqlalchemy import Connection, select

from harness.submission import AUTHOR
from kernelmark.project.project import Project
from kernelmark.record import records
from kernelmark.server.database.tables import accounts
from kernelmark.service.refusal import Refusal
from leaderboard.record.teams import NO_TEAMS, Teams

_MARKS = str.maketrans("", "", "._-")


class TakenNames(NamedTuple):
    """The names in a project besides those of accounts. Read them outside of a change: ledgers may be long."""

    authors: frozenset[str]
    """Of the ledgers, and the members of the teams in `kernelmark.toml`: only an organizer gives them to an account."""
    others: frozenset[str]
    """Of those teams, and of the kernels in `reference/`: no account has one."""
    teams: Teams = NO_TEAMS
    """Those teams."""


def taken_names(project: Project) -> TakenNames:
    """The names of a project.

    Raises:
        LedgerError: a ledger is broken.
    """
    settings, authors = project.settings, set[str]()
    for path in settings.locate("results").glob("*.jsonl"):
        with records.index(settings).lines(path) as lines:
            authors.update(tally.author for tally in lines.tallies())
    for members in settings.teams.root.values():
        authors.update(members)
    kernels = {path.stem for path in settings.locate("reference").glob("*/*") if not path.name.startswith(("_", "."))}
    return TakenNames(frozenset(authors), frozenset(kernels | set(settings.teams.root)), settings.teams)


def folded(name: str) -> str:
    """What two names have in common that are the same."""
    return name.casefold().translate(_MARKS)


def refuse_account(connection: Connection, name: str, taken: TakenNames, *, by_organizer: bool = False) -> None:
    """Refuse a name that no new account can have.

    Args:
        by_organizer: whether an organizer chose it, so that it may be the name of an author in a ledger.

    Raises:
        Refusal: it is malformed, or somebody has it.
    """
    refuse_malformed("name", name)
    same = folded(name)
    if connection.execute(select(accounts.c.id).where(accounts.c.folded == same)).first():
        raise _refusal_of_taken("name", name, "an account has it")
    if same in map(folded, taken.others) or same in map(folded, _teams(connection)):
        raise _refusal_of_taken("name", name, "a team or a reference kernel has it")
    if by_organizer:
        return
    if same in map(folded, taken.authors):
        raise Refusal(
            409,
            "name-taken",
            "name",
            f"{name!r} is taken: an author in a ledger or a team has it",
            "choose another; if it is you, ask an organizer for an invitation with that name",
        )


def refuse_team(connection: Connection, name: str, taken: TakenNames) -> None:
    """Refuse a name that no team can have.

    Raises:
        Refusal: it is malformed, or an account, an author, a kernel or a team of another spelling has it.
    """
    refuse_malformed("team", name)
    same = folded(name)
    if connection.execute(select(accounts.c.id).where(accounts.c.folded == same)).first():
        raise _refusal_of_taken("team", name, "an account has it")
    others = {other for other in taken.authors | taken.others | _teams(connection) if other != name}
    if same in map(folded, others):
        raise _refusal_of_taken("team", name, "an author, a reference kernel or another team has it")


def _teams(connection: Connection) -> frozenset[str]:
    named = connection.execute(select(accounts.c.team).where(accounts.c.team.is_not(None)).distinct())
    return frozenset(named.scalars())


def refuse_malformed(where: str, name: str) -> None:
    """Refuse what cannot be a name at all; raises a `Refusal`."""
    if not AUTHOR.fullmatch(name):
        remedy = "use up to 64 letters, digits, '.', '_' and '-', starting with a letter or a digit"
        raise Refusal(422, "bad-name", where, f"{name[:80]!r} is not a valid name", remedy)


def _refusal_of_taken(where: str, name: str, why: str) -> Refusal:
    return Refusal(409, "name-taken", where, f"{name!r} is taken: {why}", "choose another")
