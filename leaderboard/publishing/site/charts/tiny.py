"""Pictures inside a row of a table: a bar from zero, and the course of the record. Trusted; pure.

They have no text: the row says the same in numbers, so screen readers pass over them.
"""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from leaderboard.publishing.site.digest import Step

_WIDTH, _HEIGHT = 72, 16


def bar(value: float, full: float) -> Markup:
    """A bar from zero, whose whole width is `full`; a value beyond that fills it."""
    width = 100 * min(1.0, max(0.0, value / full)) if full > 0 else 0.0
    return Markup(
        f'<svg class="bar" viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">'
        f'<path d="M0 0H{width:.1f}V10H0z"/></svg>'
    )


def spark(records: Sequence[Step]) -> Markup:
    """The record's time as a step line from zero, the first record on the left; empty if it was never improved upon."""
    if len(records) < 2:
        return Markup()
    first, last = records[0].at.timestamp(), records[-1].at.timestamp()
    slowest = max(step.score_ns for step in records) or 1
    path = ""
    for step in records:
        x = 2 + (_WIDTH - 14) * (step.at.timestamp() - first) / ((last - first) or 1)
        y = 2 + (_HEIGHT - 4) * (1 - step.score_ns / slowest)
        path += f"H{x:.1f}V{y:.1f}" if path else f"M{x:.1f} {y:.1f}"
    return Markup(
        f'<svg class="spark" viewBox="0 0 {_WIDTH} {_HEIGHT}" aria-hidden="true"><path d="{path}H{_WIDTH - 2}"/></svg>'
    )
