"""Accounts: made, changed, banned and linked to an author of the ledger. Invitations and organizers' routes call it."""

from __future__ import annotations

from typing import Any, Literal

from sqlalchemy import Connection, Row, select, update

from kernelmark.server.accounts import audit, names
from kernelmark.server.accounts.names import Recorded, folded
from kernelmark.server.accounts.principal import Principal
from kernelmark.server.database.tables import accounts, submissions
from kernelmark.service.accounts import Role
from kernelmark.service.refusal import Refusal

AccountState = Literal["active", "banned"]


def owner_of(principal: Principal) -> str:
    """Who submissions of an account count for, in the queue and in limits: `team:NAME` or `account:NAME`."""
    return f"account:{principal.name}" if principal.team is None else f"team:{principal.team}"


def make(
    connection: Connection,
    now_ns: int,
    name: str,
    role: Role,
    team: str | None,
    among: Recorded,
    *,
    given: bool = False,
) -> int:
    """Make an account, and return its id; arguments as in `names.refuse_account`.

    Raises:
        Refusal: the name cannot be had.
    """
    names.refuse_account(connection, name, among, given=given)
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
    connection: Connection,
    now_ns: int,
    by: Principal,
    name: str,
    among: Recorded,
    *,
    role: Role | None = None,
    state: AccountState | None = None,
    team: str | None = None,
    no_team: bool = False,
) -> None:
    """Change an account; None: that stays as it is. Tokens gain nothing by a new role, but lose what it does not have.

    Raises:
        Refusal: there is no such account, it is one's own, or the team's name cannot be had.
    """
    row = find(connection, name)
    refuse_own(by, row.id)
    if team is not None:
        names.refuse_team(connection, team, among)
    wanted = {"role": role, "state": state, "team": team}
    new: dict[str, str | None] = {key: value for key, value in wanted.items() if value is not None}
    if no_team:
        new["team"] = None
    for key, value in new.items():
        old = getattr(row, key)
        audit.note(connection, now_ns, by, f"accounts {key}", row.name, {"old": old, "new": value})
    if new:
        connection.execute(update(accounts).where(accounts.c.id == row.id).values(**new))


def link(connection: Connection, now_ns: int, by: Principal, name: str, author: str, among: Recorded) -> None:
    """Give an account the name of an author in a ledger, whose later runs are then the account's.

    Raises:
        Refusal: there is no such account or author, it is one's own account, or the account has runs already.
    """
    row = find(connection, name)
    refuse_own(by, row.id)
    if author not in among.authors:
        what = f"no ledger has an author {author[:80]!r}"
        raise Refusal(404, "no-such-author", "author", what, "give the name as `kernelmark runs` shows it")
    if connection.execute(select(submissions.c.run).where(submissions.c.account == row.id).limit(1)).first():
        what = f"{row.name} has submitted under its own name already"
        raise Refusal(409, "account-has-runs", "account", what, "link an account that has no runs")
    names.refuse_account(connection, author, among, given=True)
    audit.note(connection, now_ns, by, "accounts link", row.name, {"old": row.name, "new": author})
    connection.execute(update(accounts).where(accounts.c.id == row.id).values(name=author, folded=folded(author)))


def refuse_own(by: Principal, account: int, owner: str | None = None) -> None:
    """Refuse an organizer's or assistant's act on their own account, or on a run of their own or of their team.

    Args:
        account: whose account, or whose run it is.
        owner: of the run, as `owner_of` named it when it was submitted.

    Raises:
        Refusal: it is.
    """
    if account != by.account_id and (owner is None or owner != owner_of(by)):
        return
    what = "is your own account" if owner is None else "is a run of your own or of your team"
    raise Refusal(403, "own-run" if owner else "own-account", by.name, what, "ask another organizer to do it")
