"""Pictures inside a row of a table: a bar from zero, and the course of the record. Trusted; pure."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from leaderboard.publishing.site.document import Step
from leaderboard.text.units import duration, percent

_WIDTH, _HEIGHT = 72, 16
_LEAST = 0.05  # the least height, as a part of the first record


def bar(value: float, full: float) -> Markup:
    """A bar from zero, whose whole width is `full`; a value beyond that fills it.

    Screen readers skip it: the row has the same information in numbers.
    """
    width = 100 * min(1.0, max(0.0, value / full)) if full > 0 else 0.0
    return Markup(
        f'<svg class="bar" viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">'
        f'<path d="M0 0H{width:.1f}V10H0z"/></svg>'
    )


def spark(records: Sequence[Step]) -> Markup:
    """The record's time as a step line, the first record on the left; empty if it was never improved upon.

    The height goes from the last record to the first, but is never less than 5 % of the time: an improvement of 1 %
    is seen, and does not look like one of 50 %. The picture's title says what its height is.
    """
    if len(records) < 2:
        return Markup()
    first, last = records[0].at.timestamp(), records[-1].at.timestamp()
    top, low = (step.score_ns for step in (records[0], records[-1]))
    height_ns = max(top - low, _LEAST * top) or 1
    path = ""
    for step in records:
        x = 2 + (_WIDTH - 14) * (step.at.timestamp() - first) / ((last - first) or 1)
        y = 2 + (_HEIGHT - 4) * (top - step.score_ns) / height_ns
        path += f"H{x:.1f}V{y:.1f}" if path else f"M{x:.1f} {y:.1f}"
    days = f"{records[0].at:%Y-%m-%d} to {records[-1].at:%Y-%m-%d}"
    times = f"{duration(top)} to {duration(low)}"
    title = f"{len(records)} records, {days}: {times}; the height is {percent(height_ns / top)} of the first"
    return Markup(
        f'<svg class="spark" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img"><title>{title}</title>'
        f'<path d="{path}H{_WIDTH - 2}"/></svg>'
    )
