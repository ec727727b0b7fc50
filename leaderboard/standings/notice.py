"""An announcement, as the site and the list of problems show it. Pure."""

from __future__ import annotations

from pydantic import AwareDatetime

from harness.verdict import FrozenModel


class Notice(FrozenModel):
    """An announcement by the organizers, to everyone or to the participants of one problem."""

    at: AwareDatetime
    text: str
    problem: str | None = None
