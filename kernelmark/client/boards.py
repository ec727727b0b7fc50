"""Reads a server's boards. `kernelmark board --from` calls it, and `submit --to` for the place of a result. Trusted."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from kernelmark.client.connection import Connection
from leaderboard.standings.ranking import Table


class Boards(BaseModel):
    """What `kernelmark board --format json` prints, and a server answers."""

    model_config = ConfigDict(extra="ignore")

    items: tuple[Table, ...]


def tables(connection: Connection, problem: str | None) -> list[Table]:
    """The standings of a problem, or of all.

    Raises:
        Refused, Unreachable, HarnessError: as for `Connection.get`.
    """
    return [*connection.get(f"boards/{problem}" if problem else "boards", Boards).items]
