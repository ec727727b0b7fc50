"""What organizers said about a run after it was graded: events that are appended, never edits, and what they come to.

The ledger stores an event beside the verdicts, the ranking folds them, the front door makes them. Trusted: who may
write the ledger may moderate; the ledger proves when and in which order, and not who.

An event speaks of one run, of every run of one source, whoever handed it in, or of every run of one author. Of a source
or an author it speaks of later runs too. Of all events that concern a run, the last one that decides its state wins, by
its place in the ledger and not by its clock: two machines' clocks may disagree, a chain has one order. So a run can be
reinstated after its author was disqualified, and what is said of the author after that holds for this run again. An
annotation decides nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Literal, Self

from pydantic import AwareDatetime, Field, StringConstraints, model_validator

from harness.verdict import Record, Sha256

Action = Literal["disqualify", "reinstate", "annotate", "late"]
Scope = Literal["run", "source", "author"]
State = Literal["ranks", "disqualified", "late"]

_STATES: dict[Action, State] = {"disqualify": "disqualified", "reinstate": "ranks", "late": "late"}
_NAMES = {"sha256", "author"}


class Moderation(Record):
    """One event: `late` is written with a verdict that was graded after the deadline, the others by `moderate`.

    `run` is what it speaks of; with the scope "source" or "author", the run that the organizer pointed at: `sha256` and
    `author` name what is meant.
    """

    schema_version: Literal[1] = 1
    run: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{16}$")]
    action: Action
    scope: Scope = "run"
    sha256: Sha256 | None = None
    author: str | None = None
    actor: Annotated[str, Field(min_length=1, max_length=100)]
    reason: Annotated[str, Field(min_length=1, max_length=1000)]
    created_at: AwareDatetime

    @model_validator(mode="after")
    def _names_its_scope(self) -> Self:
        if (self.scope == "source") != (self.sha256 is not None) or (self.scope == "author") != (
            self.author is not None
        ):
            raise ValueError("an event about a source names its sha256, one about an author the author, others neither")
        return self

    @property
    def decides(self) -> bool:
        """Whether it says anything of a run's state."""
        return self.action in _STATES

    @property
    def subject(self) -> str:
        """What it speaks of; of its run it need not be said."""
        return "" if self.scope == "run" else f"every run of this {self.scope}: "

    def to_json(self) -> str:
        """The document on one line. An event about a run is as it was before there were scopes: old versions read it;
        they refuse one with a scope, and rank nothing by half of what was said."""
        unsaid = {*_NAMES, "scope"} if self.scope == "run" else None
        return self.model_dump_json(exclude=unsaid, exclude_none=True)


class Events:
    """Events with their places in the ledger, and what they say of a run."""

    def __init__(self) -> None:
        self._about: dict[tuple[Scope, str], dict[int, Moderation]] = {}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Events) and self._about == other._about

    __hash__ = None  # type: ignore[assignment]  # it grows

    def add(self, seq: int, event: Moderation) -> None:
        named = {"run": event.run, "source": event.sha256, "author": event.author}[event.scope]
        self._about.setdefault((event.scope, str(named)), {})[seq] = event

    def of(self, runs: Iterable[str], sha256: str, author: str) -> tuple[Moderation, ...]:
        """Everything that concerns some runs of one source by one author, oldest first."""
        if not self._about:
            return ()
        keys: list[tuple[Scope, str]] = [("source", sha256), ("author", author), *(("run", run) for run in runs)]
        found = {seq: event for key in keys for seq, event in self._about.get(key, {}).items()}
        return tuple(event for _, event in sorted(found.items()))

    def state(self, run: str, sha256: str, author: str) -> State:
        """What they come to for one run; one that nothing was said of ranks."""
        return state(self.of((run,), sha256, author)) if self._about else "ranks"


def state(events: Iterable[Moderation]) -> State:
    """What the events that concern one run, oldest first, come to; a run without any ranks."""
    found: State = "ranks"
    for event in events:
        found = _STATES.get(event.action, found)
    return found
