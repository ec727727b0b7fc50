"""Decides whether a submitted source may be shown now, and with it a profile, for the site and the Markdown.

Trusted; pure. It fails closed: a source is not shown unless that is known to be allowed.
"""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from harness.problem.schedule import Schedule, shown


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
        if not self.closed(now):  # anybody who can still submit late could copy them
            return f"Sources are published when submissions close, {shown(self.closes)}."
        return ""
