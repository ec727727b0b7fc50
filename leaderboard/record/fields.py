"""What is ranked by: the few values of a verdict that decide its place and fill its row, flat and quick to make.

The index keeps them, so that a ledger of a hundred thousand lines is parsed once. Trusted, over intact documents: their
hashes were checked.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import NamedTuple, Self

from pydantic import AwareDatetime, BaseModel, TypeAdapter, ValidationError, model_validator

from harness.verdict import (
    DeviceKind,
    Effort,
    Environment,
    Interval,
    Outcome,
    ProblemId,
    ReadableVersion,
    Speedup,
    SubmissionId,
    Timing,
)
from harness.verdict.doubt import NoRank, no_rank
from leaderboard.record.entry import EXEMPT, MODERATION, VERDICT, Entry, unreadable
from leaderboard.record.moderation import Events


class Question(NamedTuple):
    """Which table a time belongs to: the fields of `ranking.TableKey`, hashable and quick to make."""

    problem: str
    problem_sha256: str
    protocol: int
    timing: Timing
    device_kind: DeviceKind
    device_name: str
    isolated: bool
    interpreted: bool


class SubmissionFields(NamedTuple):
    """A submission, as a row names it."""

    sha256: str
    name: str
    author: str
    language: str


class Score(NamedTuple):
    """The values of an `Interval`."""

    median_ns: int
    low_ns: int
    high_ns: int
    confidence: float

    @property
    def interval(self) -> Interval:
        return Interval(**self._asdict())


class VerdictFields(NamedTuple):
    """A verdict's fields of these names, and those of its line; `problem` and `environment` may be shared by many."""

    seq: int
    hash: str
    run: str
    outcome: Outcome
    problem: ProblemId
    submission: SubmissionFields
    environment: Environment
    protocol: int
    created_at: datetime
    timing: Timing
    ranked_timing: Timing | None
    score: Score | None
    doubts: str
    """The codes of its doubts, with commas between them."""
    effort: Effort
    duration_ns: int
    modes: str
    """The timing modes of its benchmark cases, each once, in order, with commas between them."""
    cases: int
    """How many benchmark cases it has."""
    speedups_json: str

    @property
    def accepted(self) -> bool:
        """Whether it has a time: it is a right answer that was timed."""
        return self.score is not None and self.outcome is Outcome.ACCEPTED

    @property
    def ranks(self) -> bool:
        """As `Verdict.ranks`."""
        return self.no_rank is None

    @property
    def no_rank(self) -> NoRank | None:
        """As `Verdict.no_rank`."""
        as_required = self.ranked_timing in (None, self.timing)
        return no_rank(as_required, self.doubts.split(",")) if self.doubts or not as_required else None

    @property
    def speedups(self) -> tuple[Speedup, ...]:
        return _SPEEDUPS.validate_json(self.speedups_json)

    @property
    def question(self) -> Question:
        ran, problem = self.environment, self.problem
        return Question(
            problem.slug,
            problem.sha256,
            self.protocol,
            self.ranked_timing or self.timing,
            ran.device_kind,
            ran.device_name,
            ran.isolated,
            ran.interpreted,
        )


class Facts(NamedTuple):
    """What the standings of one problem follow from, oldest first: events, and what is ranked by of each verdict."""

    events: Sequence[Entry]
    verdicts: Sequence[VerdictFields]

    @classmethod
    def of(cls, entries: Iterable[Entry]) -> Facts:
        """Those of entries.

        Raises:
            LedgerError: as for `fields_of`.
        """
        held = [*entries]
        events = [entry for entry in held if entry.kind in (MODERATION, EXEMPT)]
        return cls(events, [fields_of(entry) for entry in held if entry.kind == VERDICT])

    def moderation(self) -> Events:
        """The moderation events among them.

        Raises:
            LedgerError: one was written by a version whose events this one cannot read.
        """
        events = Events()
        for entry in self.events:
            if entry.kind == MODERATION:
                events.add(entry.seq, entry.moderation)
        return events


class _Doubt(BaseModel):
    code: str


class _Benchmark(BaseModel):
    mode: str


class _Parsed(BaseModel):
    """The keys that are read of a document."""

    schema_version: ReadableVersion
    outcome: Outcome
    problem: ProblemId
    submission: SubmissionId
    environment: Environment
    protocol: int
    run: str
    created_at: AwareDatetime
    timing: Timing = "sealed"
    ranked_timing: Timing | None = None
    score: Interval | None = None
    doubts: tuple[_Doubt, ...] = ()
    effort: Effort = "default"
    duration_ns: int
    benchmarks: tuple[_Benchmark, ...] = ()
    speedups: tuple[Speedup, ...] = ()

    @model_validator(mode="after")
    def _only_version_1_leaves_timings_out(self) -> Self:
        if self.schema_version > 1 and not {"timing", "ranked_timing"} <= self.model_fields_set:
            raise ValueError("timing and ranked_timing are required")
        return self


_PARSED, _SPEEDUPS = TypeAdapter(_Parsed), TypeAdapter(tuple[Speedup, ...])


def fields_of(entry: Entry) -> VerdictFields:
    """The fields of a verdict's line.

    Raises:
        LedgerError: it was written by a version whose verdicts this one cannot read.
    """
    try:
        parsed = _PARSED.validate_json(entry.document)
    except ValidationError as error:
        raise unreadable(entry, error) from error
    submission, score = parsed.submission, parsed.score
    return VerdictFields(
        entry.seq,
        entry.hash,
        parsed.run,
        parsed.outcome,
        parsed.problem,
        SubmissionFields(submission.sha256, submission.name, submission.author, submission.language),
        parsed.environment,
        parsed.protocol,
        parsed.created_at,
        parsed.timing,
        parsed.ranked_timing,
        None if score is None else Score(score.median_ns, score.low_ns, score.high_ns, score.confidence),
        _listed(doubt.code for doubt in parsed.doubts),
        parsed.effort,
        parsed.duration_ns,
        _listed(sorted({benchmark.mode for benchmark in parsed.benchmarks})),
        len(parsed.benchmarks),
        _SPEEDUPS.dump_json(parsed.speedups).decode() if parsed.speedups else "[]",
    )


def _listed(words: Iterable[str]) -> str:
    return ",".join(words)
