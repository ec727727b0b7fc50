"""Tokens: made, recognized and revoked. The routes, invitations and `serve` call it, with a connection to the database.

A token is a secret of 32 random bytes that is shown once: only its SHA-256 is kept. One that was made with another
token ends with that, too, and makes no further ones.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterable
from typing import Literal

from sqlalchemy import ColumnElement, Connection, FromClause, and_, exists, or_, select, update

from kernelmark.server.accounts.principal import SCOPES, Principal, TokenScope
from kernelmark.server.clock import moment
from kernelmark.server.database.tables import accounts, tokens
from kernelmark.server.service import Service
from kernelmark.service.accounts import NewToken, TokenOrder
from kernelmark.service.refusal import Refusal

TokenKind = Literal["client", "worker", "invitation"]

PREFIXES: dict[TokenKind, str] = {"client": "kmt_", "worker": "kmw_", "invitation": "kmi_"}
"""By which scanners for secrets, and people, recognize them."""
DAY_NS = 86_400_000_000_000
DAYS = 90
"""How long a token lives unless somebody says otherwise."""
_parent, _maker = tokens.alias("parent"), accounts.alias("maker")
_USED_EVERY_NS = 60_000_000_000  # how exact `last used` is


def make(
    connection: Connection,
    now_ns: int,
    kind: TokenKind,
    *,
    account: int | None = None,
    worker: str | None = None,
    scopes: Iterable[TokenScope] = (),
    label: str = "",
    details: str | None = None,
    uses: int | None = None,
    parent: int | None = None,
    days: float = DAYS,
) -> str:
    """Make a token, and return its secret.

    Args:
        account: whose it is, of the kind `client`.
        worker: the worker's name, of the kind `worker`, whose only scope is `work`.
        details: the document of an invitation.
        uses: how often it can be used; None: any number of times.
        parent: the id of the token that it was made with.
        days: how long it lives; not longer than its parent.
    """
    secret = PREFIXES[kind] + secrets.token_urlsafe(32)
    end_ns = now_ns + round(days * DAY_NS)
    if parent is not None:
        end_ns = min(end_ns, connection.execute(select(tokens.c.ends_ns).where(tokens.c.id == parent)).scalar_one())
    connection.execute(
        tokens.insert().values(
            sha256=hashed(secret),
            kind=kind,
            account=account,
            worker=worker,
            scopes="work" if kind == "worker" else " ".join(sorted(scopes)),
            label=label,
            details=details,
            uses_left=uses,
            parent=parent,
            created_ns=now_ns,
            ends_ns=end_ns,
        )
    )
    return secret


def hashed(secret: str) -> str:
    """What is kept of a secret. It is drawn from 256 bits, so it needs no slow hash."""
    return hashlib.sha256(secret.encode()).hexdigest()


def authenticate(connection: Connection, secret: str, now_ns: int) -> Principal | None:
    """Whom a client's or worker's token belongs to.

    None: there is no such token; it, or the one that it was made with, has ended or was revoked; or its account is
    banned.
    """
    row = connection.execute(
        select(tokens, accounts.c.name, accounts.c.role, accounts.c.team)
        .select_from(tokens.outerjoin(accounts, accounts.c.id == tokens.c.account))
        .where(tokens.c.sha256 == hashed(secret), tokens.c.kind.in_(("client", "worker")), live(now_ns))
        .where(or_(tokens.c.kind == "worker", accounts.c.state == "active"))
    ).one_or_none()
    if row is None:
        return None
    if row.kind == "worker":
        return Principal(None, row.worker, None, None, row.id, frozenset({"work"}), row.worker, row.last_used_ns)
    allowed = SCOPES[row.role] & frozenset(row.scopes.split())
    return Principal(row.account, row.name, row.role, row.team, row.id, allowed, used_ns=row.last_used_ns)


def live(now_ns: int) -> ColumnElement[bool]:
    """The tokens that still count: neither ended nor revoked, nor that with which they were made."""
    parent = exists().where(_parent.c.id == tokens.c.parent, *_unended(_parent, now_ns), _maker.c.state == "active")
    return and_(
        *_unended(tokens, now_ns), or_(tokens.c.parent.is_(None), parent.where(_maker.c.id == _parent.c.account))
    )


def note_use(service: Service, principal: Principal) -> None:
    """Have it written when a token was last used, without waiting for that, unless it was within a minute."""
    now_ns = service.clock.now_ns()
    if principal.used_ns is not None and now_ns - principal.used_ns < _USED_EVERY_NS:
        return
    used = update(tokens).where(tokens.c.id == principal.token).values(last_used_ns=now_ns)
    service.database.write(lambda connection: connection.execute(used).rowcount)


def revoke(connection: Connection, now_ns: int, *which: ColumnElement[bool]) -> list[int]:
    """End the tokens for which all conditions hold, and return the ids of those that had not been revoked before."""
    found = connection.execute(select(tokens.c.id).where(tokens.c.revoked_ns.is_(None), *which)).scalars().all()
    connection.execute(update(tokens).where(tokens.c.id.in_(found)).values(revoked_ns=now_ns))
    return list(found)


def ends_ns(connection: Connection, secret: str) -> int:
    """When a token ends that was just made."""
    return int(connection.execute(select(tokens.c.ends_ns).where(tokens.c.sha256 == hashed(secret))).scalar_one())


def delegate(connection: Connection, now_ns: int, by: Principal, order: TokenOrder) -> NewToken:
    """Make a token with another one of the account.

    Raises:
        Refusal: that was made with another one itself, or may not do what the new one is to do.
    """
    row = connection.execute(select(tokens).where(tokens.c.id == by.token)).one()
    if row.parent is not None:
        what = "was made with another token, and makes none"
        raise Refusal(403, "delegated", "the token", what, "use the one that you signed in with")
    missing = set(order.scopes) - by.scopes
    if missing:
        what = f"does not have the scope `{min(missing)}`"
        raise Refusal(403, "scope", "the token", what, "ask for scopes that it has")
    secret = make(
        connection, now_ns, "client",
        account=by.account_id, scopes=order.scopes, label=order.label, parent=by.token, days=order.days,
    )  # fmt: skip
    return NewToken(token=secret, ends=moment(ends_ns(connection, secret)))


def give_up(connection: Connection, now_ns: int, by: Principal, token: int) -> None:
    """Revoke a token of one's own account.

    Raises:
        Refusal: there is no such token, or another one than its own is asked for by one that was made with another.
    """
    if token != by.token and connection.execute(select(tokens.c.parent).where(tokens.c.id == by.token)).scalar():
        what = "was made with another token, and revokes no others"
        raise Refusal(403, "delegated", "the token", what, "use the one that you signed in with")
    mine = (tokens.c.id == token, tokens.c.account == by.account_id, tokens.c.kind == "client")
    if not revoke(connection, now_ns, *mine):
        what = "is none of yours that still counts"
        raise Refusal(404, "no-such-token", f"token {token}", what, "see them with `kernelmark tokens list`")


def _unended(token: FromClause, now_ns: int) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    return token.c.revoked_ns.is_(None), token.c.ends_ns > now_ns
