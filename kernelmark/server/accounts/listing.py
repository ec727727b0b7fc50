"""What accounts, tokens, invitations and acts there are, as documents. Routes call it with a connection that reads."""

from __future__ import annotations

import json
from typing import Literal

from sqlalchemy import Connection, func, select

from kernelmark.server.accounts import tokens as secrets
from kernelmark.server.accounts.invitations import Invited
from kernelmark.server.accounts.principal import Principal
from kernelmark.server.clock import moment
from kernelmark.server.database.tables import accounts, audit, tokens
from kernelmark.service.accounts import Me, TokenRow, Tokens
from kernelmark.service.organizing import (
    AccountRow,
    Accounts,
    Audit,
    AuditRow,
    InvitationRow,
    Invitations,
)


def me(connection: Connection, principal: Principal) -> Me:
    """Who has a token of an account."""
    ends_ns = connection.execute(select(tokens.c.ends_ns).where(tokens.c.id == principal.token)).scalar_one()
    assert principal.role is not None
    return Me(
        name=principal.name,
        role=principal.role,
        team=principal.team,
        scopes=tuple(sorted(principal.scopes)),
        ends=moment(ends_ns),
    )


def own_tokens(connection: Connection, principal: Principal, now_ns: int) -> Tokens:
    """The tokens of an account that still count, oldest first."""
    mine = (tokens.c.account == principal.account_id, tokens.c.kind == "client", secrets.live(now_ns))
    return Tokens(
        items=tuple(
            TokenRow(
                id=row.id,
                label=row.label,
                scopes=tuple(row.scopes.split()),
                created=moment(row.created_ns),
                ends=moment(row.ends_ns),
                last_used=None if row.last_used_ns is None else moment(row.last_used_ns),
                parent=row.parent,
                current=row.id == principal.token,
            )
            for row in connection.execute(select(tokens).where(*mine).order_by(tokens.c.id))
        )
    )


def all_accounts(connection: Connection) -> Accounts:
    """Every account, by name."""
    used = (
        select(tokens.c.account, func.max(tokens.c.last_used_ns).label("last_used_ns"))
        .group_by(tokens.c.account)
        .subquery()
    )
    rows = connection.execute(
        select(accounts, used.c.last_used_ns)
        .select_from(accounts.outerjoin(used, used.c.account == accounts.c.id))
        .order_by(accounts.c.folded)
    )
    return Accounts(
        items=tuple(
            AccountRow(
                name=row.name,
                role=row.role,
                state=row.state,
                team=row.team,
                created=moment(row.created_ns),
                last_used=None if row.last_used_ns is None else moment(row.last_used_ns),
            )
            for row in rows
        )
    )


def invitations(connection: Connection, now_ns: int) -> Invitations:
    """Every invitation, newest first."""
    maker, makers = tokens.alias("maker"), accounts.alias("makers")
    rows = connection.execute(
        select(tokens, makers.c.name.label("made_by"), secrets.live(now_ns).label("live"))
        .select_from(
            tokens.outerjoin(maker, maker.c.id == tokens.c.parent).outerjoin(makers, makers.c.id == maker.c.account)
        )
        .where(tokens.c.kind == "invitation")
        .order_by(tokens.c.id.desc())
    )
    found = list[InvitationRow]()
    for row in rows:
        invited = Invited.model_validate_json(row.details)
        state: Literal["open", "used", "ended", "revoked"] = "open" if row.live else "ended"
        if row.revoked_ns is not None:
            state = "revoked"
        if not row.uses_left:
            state = "used"
        found.append(
            InvitationRow(
                id=row.id,
                state=state,
                role=invited.role,
                name=invited.name,
                team=invited.team,
                made_by=row.made_by,
                ends=moment(row.ends_ns),
            )
        )
    return Invitations(items=tuple(found))


def acts(connection: Connection, before: int | None, last: int) -> Audit:
    """The last acts, or those before the one with this id, newest first."""
    chosen = select(audit).order_by(audit.c.id.desc()).limit(last)
    rows = connection.execute(chosen if before is None else chosen.where(audit.c.id < before))
    return Audit(
        items=tuple(
            AuditRow(
                id=row.id,
                at=moment(row.at_ns),
                account=row.account,
                token=row.token,
                action=row.action,
                subject=row.subject,
                details=json.loads(row.details),
            )
            for row in rows
        )
    )
