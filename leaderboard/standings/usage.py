"""The gradings of the last 24 hours that count towards each author's daily limits.

`kernelmark.record.allowance` calls it before a grading. Trusted; pure. Every recorded grading counts, whatever its
outcome, except those that an organizer requested (`record.moderation`).
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import NamedTuple

from leaderboard.record.entry import EXEMPT
from leaderboard.record.fields import Facts

DAY = timedelta(hours=24)


class Use(NamedTuple):
    """One grading: its author, when it was recorded or received, and how long it took; a `check` only tests.

    `reserved`: it is not known to have ended, and `device_ns` is the time that it is expected to take.
    """

    author: str
    at: datetime
    device_ns: int
    check: bool = False
    run: str = ""
    reserved: bool = False


def uses(facts: Facts, now: datetime) -> list[Use]:
    """The gradings of the 24 hours before `now` that count, oldest first.

    Raises:
        LedgerError: an exemption was written by a version that this one cannot read.
    """
    exempt = {entry.exemption.run for entry in facts.events if entry.kind == EXEMPT}
    counted = (v for v in facts.verdicts if v.created_at > now - DAY and v.run not in exempt)
    found = (Use(v.author, v.created_at, v.duration_ns, run=v.run) for v in counted)
    return sorted(found, key=lambda use: use.at)
