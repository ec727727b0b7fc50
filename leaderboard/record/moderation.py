"""Moderation: events that organizers append after a run was graded, and the state that they give the run.

`kernelmark` makes events, the ledger stores them among the verdicts, and the ranking applies them. Trusted: anybody who
can write the ledger can moderate. The ledger proves the order of events, not who wrote them.

An event is about one run, about every run of one source by any author, or about every run of one author. The latter two
also cover later runs. Of all events that concern a run, the last one that decides a state wins, by its place in the
ledger, not by its time: clocks of two machines may disagree, but a chain has one order. So a run can be reinstated
after its author was disqualified, and a later event about the author applies to this run again. An annotation decides
nothing. An event can be undone by a later one, and this one, too: both stay in the ledger, and no longer count.

An exemption says that a run does not count towards its author's daily limits; `standings.usage` reads it, and older
versions skip it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import Annotated, Literal, Self

from pydantic import AwareDatetime, Field, StringConstraints, model_validator

from harness.verdict import RUN_ID, FrozenModel, Sha256, Verdict

Action = Literal["disqualify", "reinstate", "annotate", "late", "undo"]
Scope = Literal["run", "source", "author"]
ModeratedState = Literal["ranks", "disqualified", "late"]

_STATES: dict[Action, ModeratedState] = {"disqualify": "disqualified", "reinstate": "ranks", "late": "late"}
_NAMES = {"sha256", "author"}


class Moderation(FrozenModel):
    """One event. `late` is written with a verdict that was handed in after the deadline, and `annotate` with one that
    was only graded after it; `moderate` writes the others.

    With the scope "run" it is about `run`. With the scope "source" or "author", `run` is the run that the organizer
    named, and the event is about `sha256` or `author`. The action "undo" has the scope of the event that it `undoes`.
    """

    schema_version: Literal[1] = 1
    run: Annotated[str, StringConstraints(pattern=RUN_ID)]
    action: Action
    scope: Scope = "run"
    sha256: Sha256 | None = None
    author: str | None = None
    undoes: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{16}$")] | None = None
    actor: Annotated[str, Field(min_length=1, max_length=100)]
    reason: Annotated[str, Field(min_length=1, max_length=1000)]
    created_at: AwareDatetime

    @model_validator(mode="after")
    def _names_its_scope(self) -> Self:
        if (self.scope == "source") != (self.sha256 is not None) or (self.scope == "author") != (
            self.author is not None
        ):
            raise ValueError("an event about a source names its sha256, one about an author the author, others neither")
        if (self.action == "undo") != (self.undoes is not None):
            raise ValueError("an event that undoes another names it, and no other event does")
        return self

    @property
    def id(self) -> str:
        """A hash of the event's content, so that it is the same in every ledger and after a merge."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()[:16]

    @property
    def about(self) -> tuple[Scope, str]:
        """The event's scope, and the run, the hash of the source or the author that it is about."""
        named = {"run": self.run, "source": self.sha256, "author": self.author}[self.scope]
        return self.scope, str(named)

    @property
    def decides(self) -> bool:
        """Whether it decides a run's state."""
        return self.action in _STATES

    @property
    def subject(self) -> str:
        """The event's subject, as the beginning of a sentence; empty if it is about a single run."""
        return "" if self.scope == "run" else f"every run of this {self.scope}: "

    def to_json(self) -> str:
        """The document on one line. An event about a run has no scope, so versions from before scopes read it; they
        refuse one with a scope, rather than misapply it."""
        unsaid = {*_NAMES, "scope"} if self.scope == "run" else None
        return self.model_dump_json(exclude=unsaid, exclude_none=True)


class RecordedEvent(FrozenModel):
    """An event with its id, the problems in whose ledgers it is, and the id of what undoes it in all, if any."""

    event: Moderation
    id: str
    problems: tuple[str, ...]
    undone_by: str = ""


class Exemption(FrozenModel):
    """An organizer requested the run that is recorded right after this; `created_at` is that of its verdict."""

    run: Annotated[str, StringConstraints(pattern=RUN_ID)]
    created_at: AwareDatetime

    @classmethod
    def of(cls, verdict: Verdict) -> Exemption:
        return cls(run=verdict.run, created_at=verdict.created_at)


class Events:
    """Moderation events with their places in the ledger."""

    def __init__(self) -> None:
        self._about: dict[tuple[Scope, str], dict[int, Moderation]] = {}

    def add(self, seq: int, event: Moderation) -> None:
        self._about.setdefault(event.about, {})[seq] = event

    @property
    def every(self) -> tuple[Moderation, ...]:
        """All of them, oldest first."""
        by_seq = {seq: event for about in self._about.values() for seq, event in about.items()}
        return tuple(event for _, event in sorted(by_seq.items()))

    def named(self, scope: Scope) -> list[str]:
        """The runs, the hashes of the sources or the authors that events are about."""
        return [name for about, name in self._about if about == scope]

    def of(self, runs: Iterable[str], sha256: str, author: str) -> tuple[Moderation, ...]:
        """The events that concern any of these runs of one source by one author, oldest first."""
        if not self._about:
            return ()
        keys: list[tuple[Scope, str]] = [("source", sha256), ("author", author), *(("run", run) for run in runs)]
        by_seq = {seq: event for key in keys for seq, event in self._about.get(key, {}).items()}
        return tuple(event for _, event in sorted(by_seq.items()))

    def state(self, run: str, sha256: str, author: str) -> ModeratedState:
        """The state of one run; it ranks unless an event says otherwise."""
        return state(self.of((run,), sha256, author)) if self._about else "ranks"


def undone(events: Sequence[Moderation]) -> dict[str, Moderation]:
    """The id of each event that was undone, with the event that undoes it and was not undone itself.

    `events` are oldest first.
    """
    found: dict[str, Moderation] = {}
    if any(event.undoes is not None for event in events):
        for event in reversed(events):
            if event.undoes is not None and event.id not in found:
                found.setdefault(event.undoes, event)
    return found


def standing(events: Sequence[Moderation]) -> tuple[Moderation, ...]:
    """The events that are in force: without those that were undone, and without those that undo others."""
    gone = undone(events)
    return (
        tuple(event for event in events if event.undoes is None and not (gone and event.id in gone)) if events else ()
    )


def state(events: Sequence[Moderation]) -> ModeratedState:
    """The state that the events of one run, oldest first, result in; a run without events ranks."""
    result: ModeratedState = "ranks"
    for event in standing(events):
        result = _STATES.get(event.action, result)
    return result
