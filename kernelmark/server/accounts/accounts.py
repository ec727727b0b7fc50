"""Accounts: made, changed, banned and linked to an author of the ledger. Invitations and organizers' routes call it."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, Row, select, update

from kernelmark.server.accounts import audit, names, tokens
from kernelmark.server.accounts.names import TakenNames, folded
from kernelmark.server.accounts.principal import Principal
from kernelmark.server.database import tables
from kernelmark.server.database.tables import accounts, memberships, submissions
from kernelmark.service.accounts import AccountRole
from kernelmark.service.organizing import AccountChange
from kernelmark.service.refusal import Refusal


def owner_of(principal: Principal) -> str:
    """Who submissions of an account count for, in the queue and in limits: `team:NAME` or `account:NAME`."""
    return f"account:{principal.name}" if principal.team is None else f"team:{principal.team}"


def make(
    connection: Connection,
    now_ns: int,
    name: str,
    role: AccountRole,
    team: str | None,
    taken: TakenNames,
    *,
    by_organizer: bool = False,
) -> int:
    """Make an account, and return its id; arguments as in `names.refuse_account`.

    Without a team it is in that which `kernelmark.toml` gives its name.

    Raises:
        Refusal: the name cannot be had.
    """
    names.refuse_account(connection, name, taken, by_organizer=by_organizer)
    named = taken.teams.of(name)
    if team is None and named is not None:
        team = named.name
    row = accounts.insert().values(
        name=name, folded=folded(name), role=role, state="active", team=team, created_ns=now_ns
    )
    return int(connection.execute(row.returning(accounts.c.id)).scalar_one())


def find(connection: Connection, name: str) -> Row[Any]:
    """The account that is called that, or is spelled nearly so.

    Raises:
        Refusal: there is none.
    """
    row = connection.execute(select(accounts).where(accounts.c.folded == folded(name))).one_or_none()
    if row is None:
        remedy = "see who there is with `kernelmark accounts list`"
        raise Refusal(404, "no-such-account", "account", f"there is no account {name[:80]!r}", remedy)
    return row


def change(
    connection: Connection, now_ns: int, by: Principal, name: str, taken: TakenNames, order: AccountChange
) -> None:
    """Change an account. Tokens gain nothing by a new role, but lose what it does not have.

    Raises:
        Refusal: there is no such account, it is one's own, or the team's name cannot be had.
    """
    row = find(connection, name)
    _refuse_own(by, row)
    if order.team is not None:
        names.refuse_team(connection, order.team, taken)
    new = order.model_dump(include={"role", "state", "team"}, exclude_none=True)
    if order.no_team:
        new["team"] = None
    for key, value in new.items():
        old = getattr(row, key)
        if old != value:
            audit.note(connection, now_ns, by, f"accounts {key}", row.name, {"old": old, "new": value})
    if row.team is not None and new.get("team", row.team) != row.team:
        _note_leaving(connection, now_ns, row.id, row.team)
    if new:
        connection.execute(update(accounts).where(accounts.c.id == row.id).values(**new))


def sign_out(connection: Connection, now_ns: int, by: Principal, name: str) -> None:
    """End all tokens of an account, and the invitations that were made with them.

    Raises:
        Refusal: there is no such account, or it is one's own.
    """
    row = find(connection, name)
    _refuse_own(by, row)
    ended = tokens.revoke(connection, now_ns, tables.tokens.c.account == row.id)
    audit.note(connection, now_ns, by, "accounts sign-out", row.name, {"tokens": ended})


def _note_leaving(connection: Connection, now_ns: int, account: int, team: str) -> None:
    """Keep when an account left a team: what it used before counts for the team for a day."""
    mine = (memberships.c.account == account) & (memberships.c.team == team)
    connection.execute(memberships.delete().where(mine))
    connection.execute(memberships.insert().values(account=account, team=team, left_ns=now_ns))


def link(connection: Connection, now_ns: int, by: Principal, name: str, author: str, taken: TakenNames) -> None:
    """Give an account the name of an author in a ledger, whose later runs are then the account's.

    Raises:
        Refusal: there is no such account or author, it is one's own account, or the account has runs already.
    """
    row = find(connection, name)
    _refuse_own(by, row)
    if author not in taken.authors:
        what = f"no ledger has an author {author[:80]!r}"
        raise Refusal(404, "no-such-author", "author", what, "give the name as `kernelmark runs` shows it")
    if connection.execute(select(submissions.c.run).where(submissions.c.account == row.id).limit(1)).first():
        what = f"{row.name} has submitted under its own name already"
        raise Refusal(409, "account-has-runs", "account", what, "link an account that has no runs")
    names.refuse_account(connection, author, taken, by_organizer=True)
    audit.note(connection, now_ns, by, "accounts link", row.name, {"old": row.name, "new": author})
    connection.execute(update(accounts).where(accounts.c.id == row.id).values(name=author, folded=folded(author)))
    connection.execute(update(tables.pauses).where(tables.pauses.c.subject == row.name).values(subject=author))


def refuse_own_run(connection: Connection, by: Principal, account: int, owner: str) -> None:
    """Refuse an act on a run of one's own, or of one's team.

    Args:
        account: whose run it is.
        owner: of the run, as `owner_of` named it when it was submitted.

    Raises:
        Refusal: it is one.
    """
    team = connection.execute(select(accounts.c.team).where(accounts.c.id == account)).scalar()
    mates = by.team is not None and by.team == team
    if account == by.account_id or owner == owner_of(by) or mates:
        remedy = "ask another organizer to do it"
        raise Refusal(403, "own-run", "run", "is your own, or your team's", remedy)


def _refuse_own(by: Principal, row: Row[Any]) -> None:
    if row.id == by.account_id:
        raise Refusal(403, "own-account", row.name, "is your own account", "ask another organizer to do it")
