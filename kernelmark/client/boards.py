"""Reads a server's boards and problems: for `--from`, and after `submit --to` for the place of a result. Trusted."""

from __future__ import annotations

from urllib.parse import quote

from pydantic import BaseModel, ConfigDict

from kernelmark.client.connection import Connection
from kernelmark.text.terminal import visible
from leaderboard.standings.ranking import Table


class Boards(BaseModel):
    """What `kernelmark board --format json` prints, and a server answers."""

    model_config = ConfigDict(extra="ignore")

    items: tuple[Table, ...]


def problem_text(connection: Connection, slug: str) -> list[str]:
    """What a problem asks for, as lines without controls.

    Raises:
        Refused, Unreachable: as for `Connection.get`.
    """
    content = connection.get_bytes(f"problems/{quote(slug, safe='')}/text")
    return [visible(line) for line in content.decode(errors="replace").splitlines()]


def tables(connection: Connection, problem: str | None) -> list[Table]:
    """The standings of a problem, or of all.

    Raises:
        Refused, Unreachable, HarnessError: as for `Connection.get`.
    """
    return [*connection.get(f"boards/{problem}" if problem else "boards", Boards).items]
