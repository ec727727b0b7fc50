"""Whether a submitted source may be shown now: the one decision for the site, the Markdown and whatever else publishes.

Trusted; pure. It fails closed: what is not known to be allowed is not shown.
"""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import AwareDatetime, BaseModel, TypeAdapter, ValidationError

from harness.verdict import ProblemId, Record
from leaderboard.record.entry import VERDICT, Entry


class Rule(Record):
    """What a problem's `visibility` and `deadline` say of the sources that were handed in to it.

    The default is for a problem that is not there any more.
    """

    problem: str
    visibility: Literal["public", "after_deadline", "never"] = "never"
    deadline: AwareDatetime | None = None

    def hidden(self, now: datetime) -> str:
        """Why sources may not be shown at `now`, which carries its time zone; empty where they may."""
        if self.visibility == "never" or now.tzinfo is None:
            return "This problem does not publish sources."
        if self.visibility == "public":
            return ""
        if self.deadline is None:
            return "Sources are published after the deadline, and none is set."
        if now <= self.deadline:
            return f"Sources are published after the deadline, {self.deadline.isoformat(' ', 'minutes')}."
        return ""


class _Of(BaseModel):
    problem: ProblemId


_OF = TypeAdapter(_Of)


def visible_source(entry: Entry, rule: Rule | None, now: datetime) -> bool:
    """Whether the source of a recorded verdict may be shown at `now`, which carries its time zone.

    No rule (the problem is gone, or its `problem.toml` cannot be read), the rule of another problem, an entry that is
    no verdict and a `now` without a time zone all mean no.
    """
    if rule is None or rule.hidden(now) or entry.kind != VERDICT:
        return False
    try:
        slug = _OF.validate_json(entry.document).problem.slug
    except ValidationError:
        return False
    return slug == rule.problem
