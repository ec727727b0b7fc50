"""What organizers and assistants did, and to what: rows that are only added. Routes call it in the change they note."""

from __future__ import annotations

import json
from collections.abc import Mapping

from sqlalchemy import Connection

from kernelmark.server.accounts.principal import Principal
from kernelmark.server.database import tables


def note(
    connection: Connection,
    now_ns: int,
    by: Principal | None,
    action: str,
    subject: str,
    details: Mapping[str, object] | None = None,
) -> None:
    """Note an act, with the values that it replaced among the details.

    Args:
        by: who did it; None: the server, for the person who started it.
        action: the words of a command, such as `accounts role`.
        subject: the name of an account, worker or problem, or a run.
    """
    connection.execute(
        tables.audit.insert().values(
            at_ns=now_ns,
            account=None if by is None else by.name,
            token=None if by is None else by.token,
            action=action,
            subject=subject,
            details=json.dumps(details or {}),
        )
    )
