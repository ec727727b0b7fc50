"""Decides whether a submitted source may be shown now, and with it a profile, for the site and the Markdown.

Trusted; pure. It fails closed: a source is not shown unless that is known to be allowed.
"""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import BaseModel, TypeAdapter, ValidationError

from harness.problem.schedule import Schedule, shown
from harness.verdict import ProblemId
from leaderboard.record.entry import VERDICT, Entry


class Rule(Schedule):
    """When a problem's `visibility` and schedule allow its submitted sources to be shown.

    The defaults are for a problem that no longer exists.
    """

    problem: str
    visibility: Literal["public", "after_deadline", "never"] = "never"

    def hidden(self, now: datetime) -> str:
        """Why sources may not be shown at `now`, which must have a time zone; empty if they may."""
        if self.visibility == "never" or now.tzinfo is None:
            return "This problem does not publish sources."
        if self.visibility == "public":
            return ""
        if self.closes is None:
            return "Sources are published after the deadline, and none is set."
        if not self.closed(now):  # whoever may still submit late could copy them
            return f"Sources are published when submissions close, {shown(self.closes)}."
        return ""


class _Of(BaseModel):
    problem: ProblemId


_OF = TypeAdapter(_Of)


def visible_source(entry: Entry, rule: Rule | None, now: datetime) -> bool:
    """Whether the source of a recorded verdict may be shown at `now`, which must have a time zone.

    It may not if there is no rule (the problem is gone, or its `problem.toml` cannot be read), if the rule is of
    another problem, if the entry is not a verdict, or if `now` has no time zone.
    """
    if rule is None or rule.hidden(now) or entry.kind != VERDICT:
        return False
    try:
        slug = _OF.validate_json(entry.document).problem.slug
    except ValidationError:
        return False
    return slug == rule.problem
