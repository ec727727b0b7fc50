"""What organizers said about a run after it was graded: events that are appended, never edits, and what they come to.

The ledger stores an event beside the verdicts, the ranking folds them, the front door makes them. Trusted: who may
write the ledger may moderate; the ledger proves when and in which order, and not who.

The last event of a run that decides its state wins, by its place in the ledger and not by its clock: two machines'
clocks may disagree, a chain has one order. An annotation decides nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Literal

from pydantic import AwareDatetime, Field, StringConstraints

from harness.verdict import Record

Action = Literal["disqualify", "reinstate", "annotate", "late"]
State = Literal["ranks", "disqualified", "late"]

_STATES: dict[Action, State] = {"disqualify": "disqualified", "reinstate": "ranks", "late": "late"}


class Moderation(Record):
    """One event: `late` is written with a verdict that was graded after the deadline, the others by `moderate`."""

    schema_version: Literal[1] = 1
    run: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{16}$")]
    action: Action
    actor: Annotated[str, Field(min_length=1, max_length=100)]
    reason: Annotated[str, Field(min_length=1, max_length=1000)]
    created_at: AwareDatetime

    def to_json(self) -> str:
        """The document on one line."""
        return self.model_dump_json()


def state(events: Iterable[Moderation]) -> State:
    """What the events of one run, oldest first, come to; a run without any ranks."""
    found: State = "ranks"
    for event in events:
        found = _STATES.get(event.action, found)
    return found
