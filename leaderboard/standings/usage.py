"""What each author had graded in the last 24 hours, by the record, for the limits a day.

`kernelmark.record.allowance` asks it before a grading. Trusted; pure. Every recorded grading counts, whatever its
outcome, but for those that an organizer asked for (`record.moderation`).
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import NamedTuple

from leaderboard.record.entry import EXEMPT
from leaderboard.record.fields import Facts

DAY = timedelta(hours=24)


class Use(NamedTuple):
    """One grading: whose, when it was recorded or received, and how long it took; a `check` only tests.

    `reserved`: it has not ended, as far as is told, and `device_ns` is what it is expected to take.
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
