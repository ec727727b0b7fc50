"""Invitations: tokens that make an account, or let somebody back into one, once. Routes and `serve` call it.

An invitation ends with the token that it was made with, and when its maker is no organizer any more. So the scopes of
organizers come from the server's own first link, or from an organizer, and from nowhere else.
"""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict
from sqlalchemy import Connection, Row, Select, select, update

from kernelmark.server.accounts import accounts as people
from kernelmark.server.accounts import audit, names, tokens
from kernelmark.server.accounts.names import TakenNames
from kernelmark.server.accounts.principal import SCOPES, Principal
from kernelmark.server.database import tables
from kernelmark.service.accounts import AccountRole, InvitationAcceptance
from kernelmark.service.organizing import InvitationOrder
from kernelmark.service.refusal import Refusal

_FIRST_DAYS = 1
_FIRST = "the first organizer"  # the label of the server's own invitations


class Invited(BaseModel):
    """What an invitation makes: an account with this role, or a token of an account that there is."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    role: AccountRole = "participant"
    name: str | None = None
    """None: whoever uses it chooses."""
    team: str | None = None
    account: int | None = None
    """The account that it lets somebody back into."""
    first: bool = False
    """Whether the server made it, for the first organizer."""


def make(
    connection: Connection, now_ns: int, by: Principal, taken: TakenNames, order: InvitationOrder
) -> list[tuple[str, Invited]]:
    """Make invitations, and return their secrets with what they give.

    Raises:
        Refusal: a name cannot be had, there is no such account, or what is ordered does not go together.
    """
    invited = Invited(role=order.role, name=order.name, team=order.team)
    if (order.name is not None or order.account is not None) and order.count != 1:
        raise Refusal(422, "one-account", "count", f"is {order.count}, for one account", "make one for each name")
    if order.name is not None:
        names.refuse_account(connection, order.name, taken, by_organizer=True)
    if order.team is not None:
        names.refuse_team(connection, order.team, taken)
    if order.account is not None:
        if invited != Invited():
            what = "exists already, with its name, role and team"
            raise Refusal(422, "account-exists", f"account {order.account[:80]!r}", what, "give the account alone")
        row = people.find(connection, order.account)
        invited = Invited(role=row.role, name=row.name, account=row.id)
    made = [
        tokens.make(
            connection, now_ns, "invitation",
            details=invited.model_dump_json(), uses=1, parent=by.token, days=order.days, label=invited.name or "",
        )
        for _ in range(order.count)
    ]  # fmt: skip
    details = {**invited.model_dump(), "count": order.count}
    audit.note(connection, now_ns, by, "invitations make", invited.name or "", details)
    return [(secret, invited) for secret in made]


def revoke(connection: Connection, now_ns: int, by: Principal, invitation: int) -> None:
    """End an invitation that was not used.

    Raises:
        Refusal: there is none with this id that still counts.
    """
    mine = (tables.tokens.c.id == invitation, tables.tokens.c.kind == "invitation", tables.tokens.c.uses_left > 0)
    if not tokens.revoke(connection, now_ns, *mine):
        what = "is none that can still be used"
        raise Refusal(404, "no-such-invitation", f"invitation {invitation}", what, "`kernelmark invitations list`")
    audit.note(connection, now_ns, by, "invitations revoke", str(invitation))


def first(connection: Connection, now_ns: int, *, lost: bool = False) -> str | None:
    """The secret of a new invitation for the first organizer, in place of the one before; None: there is an organizer.

    An organizer counts who has used a token that still counts. `lost`: make it all the same, for one whose token is
    lost; whoever starts the server says so.
    """
    there = (
        select(tables.tokens.c.id)
        .join(tables.accounts, tables.accounts.c.id == tables.tokens.c.account)
        .where(tables.accounts.c.role == "organizer", tables.accounts.c.state == "active", tokens.live(now_ns))
        .where(tables.tokens.c.last_used_ns.is_not(None), tables.tokens.c.scopes.contains("organize"))
    )
    mine = tables.tokens.c.kind == "invitation", tables.tokens.c.label == _FIRST, tables.tokens.c.parent.is_(None)
    tokens.revoke(connection, now_ns, *mine)
    if not lost and connection.execute(there.limit(1)).first():
        return None
    details = Invited(role="organizer", first=True).model_dump_json()
    return tokens.make(connection, now_ns, "invitation", details=details, uses=1, days=_FIRST_DAYS, label=_FIRST)


def accept(connection: Connection, now_ns: int, acceptance: InvitationAcceptance, taken: TakenNames) -> str:
    """Use an invitation up, and return the secret of a new token of its account.

    Raises:
        Refusal: there is no such invitation, it was used or has ended, or the name cannot be had.
    """
    row = usable(connection, acceptance.secret, now_ns)
    invited = Invited.model_validate_json(row.details)
    connection.execute(update(tables.tokens).where(tables.tokens.c.id == row.id).values(uses_left=row.uses_left - 1))
    name = invited.name or acceptance.name
    if name is None:
        raise Refusal(422, "name-needed", "name", "is missing", "choose a name for the new account")
    if acceptance.name is not None and names.folded(acceptance.name) != names.folded(name):
        remedy = "leave the name out, or ask for another invitation"
        raise Refusal(409, "other-name", "name", f"the invitation is for {name}", remedy)
    account = invited.account or _account_of(connection, now_ns, invited, name, taken)
    found = connection.execute(select(tables.accounts).where(tables.accounts.c.id == account)).one()
    if found.state != "active":
        raise Refusal(403, "banned", "account", f"{found.name} is banned", "ask an organizer")
    scopes = SCOPES[found.role] & SCOPES[invited.role]
    secret = tokens.make(connection, now_ns, "client", account=found.id, scopes=scopes, label=acceptance.label)
    audit.note(connection, now_ns, None, "invitations accept", found.name, {"invitation": row.id, "role": found.role})
    return secret


def _account_of(connection: Connection, now_ns: int, invited: Invited, name: str, taken: TakenNames) -> int:
    """Make the account of an invitation; the first organizer's may be there already, and its token be lost."""
    if invited.first:
        same = tables.accounts.c.folded == names.folded(name)
        row = connection.execute(select(tables.accounts).where(same, tables.accounts.c.role == "organizer")).first()
        if row is not None:
            return int(row.id)
    chosen = invited.first or invited.name is not None
    return people.make(connection, now_ns, name, invited.role, invited.team, taken, by_organizer=chosen)


def usable(connection: Connection, secret: str, now_ns: int) -> Row[Any]:
    """The invitation with this secret, which counts.

    Raises:
        Refusal: there is none, or it was used, has ended or was revoked.
    """
    mine = (tables.tokens.c.sha256 == tokens.hashed(secret), tables.tokens.c.kind == "invitation")
    row = connection.execute(select(tables.tokens).where(*mine)).one_or_none()
    remedy = "ask an organizer for another"
    if row is None:
        raise Refusal(404, "no-such-invitation", "invitation", "there is no such invitation", "give the whole link")
    if not row.uses_left:
        raise Refusal(410, "invitation-used", "invitation", "was used already", remedy)
    if not connection.execute(select(tables.tokens.c.id).where(*mine, tokens.live(now_ns))).first():
        raise Refusal(410, "invitation-ended", "invitation", "has ended, or was revoked", remedy)
    if row.parent is not None and not connection.execute(_made_by_an_organizer(row.parent)).first():
        raise Refusal(410, "invitation-ended", "invitation", "its maker is no organizer any more", remedy)
    return row


def _made_by_an_organizer(token: int) -> Select[Any]:
    makers = tables.tokens.join(tables.accounts, tables.accounts.c.id == tables.tokens.c.account)
    is_one = tables.accounts.c.role == "organizer"
    return select(tables.accounts.c.id).select_from(makers).where(tables.tokens.c.id == token, is_one)
