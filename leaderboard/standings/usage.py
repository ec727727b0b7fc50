"""What each author had graded in the last 24 hours, by the record, for the limits a day.

`kernelmark.record.allowance` asks it before a grading. Trusted; pure. Every recorded grading counts, whatever its
outcome, but for those that an organizer asked for (`record.exemption`).
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import NamedTuple

from pydantic import AwareDatetime, BaseModel, TypeAdapter, ValidationError

from leaderboard.record.entry import EXEMPT, VERDICT, Entry, unreadable
from leaderboard.record.exemption import Exemption

DAY = timedelta(hours=24)
_ZONES = timedelta(days=1)  # more than any time zone differs from UTC


class Use(NamedTuple):
    """One grading: whose, when it was recorded, and how long it took."""

    author: str
    at: datetime
    device_ns: int


class _Author(BaseModel):
    author: str


class _Graded(BaseModel):
    run: str
    created_at: AwareDatetime
    duration_ns: int
    submission: _Author


_GRADED = TypeAdapter(_Graded)


def uses(entries: Iterable[Entry], now: datetime) -> list[Use]:
    """The gradings of the 24 hours before `now` that count, oldest first.

    Raises:
        LedgerError: an entry was written by a version whose verdicts this one cannot read.
    """
    dates = _dates(now - DAY, now)
    exempt, found = set[str](), list[_Graded]()
    for entry in entries:
        if not any(date in entry.document for date in dates):  # a cheap filter before parsing
            continue
        try:
            if entry.kind == EXEMPT:
                exempt.add(Exemption.model_validate_json(entry.document).run)
            elif entry.kind == VERDICT:
                found.append(_GRADED.validate_json(entry.document))
        except ValidationError as error:
            raise unreadable(entry, error) from error
    counted = (each for each in found if each.created_at > now - DAY and each.run not in exempt)
    return sorted(
        (Use(each.submission.author, each.created_at, each.duration_ns) for each in counted), key=lambda use: use.at
    )


def _dates(first: datetime, last: datetime) -> list[bytes]:
    """How a document may write a time between two, in any time zone."""
    days = range((last - first + 2 * _ZONES).days + 1)
    return [f'"created_at":"{(first - _ZONES + timedelta(days=day)):%Y-%m-%d}'.encode() for day in days]
