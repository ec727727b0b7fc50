"""The values of a verdict from which the standings follow: flat, and quick to make from a row of the index.

The index stores them, so that a ledger of a hundred thousand lines is parsed once. Trusted code over intact documents:
their hashes were checked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cached_property
from typing import NamedTuple, Self

from pydantic import AwareDatetime, BaseModel, TypeAdapter, ValidationError, model_validator

from harness.errors import LedgerError
from harness.stats import geometric_mean
from harness.verdict import (
    DeviceKind,
    Effort,
    Environment,
    FrozenModel,
    Interval,
    Outcome,
    ProblemId,
    ReadableVersion,
    Roofline,
    Speedup,
    SubmissionId,
    Timing,
    Verdict,
)
from harness.verdict.doubt import NoRank, no_rank
from leaderboard.record.entry import MODERATION, SELECTION, VERDICT, Entry, unreadable
from leaderboard.record.moderation import Events
from leaderboard.record.selection import Selection

_HOW_TIMED: Mapping[Timing, str] = {"replayed": "replayed", "calls": "plain calls", "sealed": "sealed rounds"}


def how_timed(timing: Timing, device_kind: DeviceKind) -> str:
    """The name of a timing in a table's title; empty on a CPU, where there is only one."""
    return _HOW_TIMED[timing] if device_kind == "cuda" else ""


class TableKey(FrozenModel):
    """What the rows of one table have in common, so that their times can be compared."""

    problem: str
    problem_sha256: str
    protocol: int
    timing: Timing
    device_kind: DeviceKind
    device_name: str
    isolated: bool
    interpreted: bool

    @classmethod
    def of(cls, verdict: Verdict | Setting) -> TableKey:
        """The key of the table that a verdict belongs to, if it has a time."""
        ran, problem = verdict.environment, verdict.problem
        return cls(
            problem=problem.slug,
            problem_sha256=problem.sha256,
            protocol=verdict.protocol,
            timing=verdict.ranked_timing or verdict.timing,
            device_kind=ran.device_kind,
            device_name=ran.device_name,
            isolated=ran.isolated,
            interpreted=ran.interpreted,
        )

    @property
    def how_timed(self) -> str:
        """The name of the table's timing; empty on a CPU."""
        return how_timed(self.timing, self.device_kind)

    @property
    def title(self) -> str:
        """The device, and what distinguishes its tables: `NVIDIA H200, replayed`, `AMD EPYC, Triton interpreter`."""
        return ", ".join(filter(None, (self.device_name, self.variant)))

    @property
    def variant(self) -> str:
        """The title without the device: the timing, and how the runs were made; often empty."""
        isolation, triton = "" if self.isolated else "not isolated", "Triton interpreter" if self.interpreted else ""
        return ", ".join(filter(None, (self.how_timed, isolation, triton)))


class Setting(FrozenModel):
    """The part that many verdicts share: the problem, the environment, how times were taken and how they must be."""

    problem: ProblemId
    environment: Environment
    protocol: int
    timing: Timing
    ranked_timing: Timing | None

    @cached_property
    def key(self) -> TableKey:
        """The key of the table that times of this setting belong to."""
        return TableKey.of(self)


class VerdictFields(NamedTuple):
    """A verdict's values, with the number and the hash of its line; `setting` is one object for many verdicts."""

    seq: int
    hash: str
    run: str
    author: str
    name: str
    language: str
    sha256: str
    median_ns: int | None
    low_ns: int | None
    high_ns: int | None
    confidence: float | None
    share: float | None
    """The geometric mean of the cases' shares of the roofline; None unless every case has one."""
    peak_bytes: int | None
    """The most device memory that a call of any case allocated; None if it is unknown for a case."""
    doubts: str
    """The codes of its doubts, with commas between them."""
    effort: Effort
    duration_ns: int
    modes: str
    """The timing modes of its benchmark cases, each once, in order, with commas between them."""
    cases: int
    """How many benchmark cases it has."""
    speedups_json: str
    outcome: Outcome
    created_at: datetime
    setting: Setting
    start: int = 0
    """The offset of its line in the file, and `length` its size in bytes; both 0 if it was not read from the index."""
    length: int = 0

    @property
    def problem(self) -> ProblemId:
        return self.setting.problem

    @property
    def environment(self) -> Environment:
        return self.setting.environment

    @property
    def accepted(self) -> bool:
        """Whether it has a time: it is a right answer that was timed."""
        return self.median_ns is not None and self.outcome is Outcome.ACCEPTED

    @property
    def ranks(self) -> bool:
        """Whether it may rank, as `Verdict.ranks` says."""
        return self.no_rank is None

    @property
    def no_rank(self) -> NoRank | None:
        """Why it may not rank, as `Verdict.no_rank` says; None if it may."""
        as_required = self.setting.ranked_timing in (None, self.setting.timing)
        return no_rank(as_required, self.doubts.split(",")) if self.doubts or not as_required else None

    @property
    def score(self) -> Interval:
        """The time of an accepted verdict."""
        median_ns, low_ns, high_ns, confidence = self.median_ns, self.low_ns, self.high_ns, self.confidence
        assert median_ns is not None
        assert low_ns is not None
        assert high_ns is not None
        assert confidence is not None
        return Interval(median_ns=median_ns, low_ns=low_ns, high_ns=high_ns, confidence=confidence)

    @property
    def speedups(self) -> tuple[Speedup, ...]:
        return _SPEEDUPS.validate_json(self.speedups_json) if self.speedups_json != "[]" else ()

    @property
    def age(self) -> tuple[datetime, str]:
        """A key that sorts verdicts, oldest first."""
        return self.created_at, self.run


class LastSeen(NamedTuple):
    """A setting, and when the newest verdict in it was made."""

    setting: Setting
    at: datetime


class Facts(NamedTuple):
    """The facts from which the standings of one problem follow, oldest first: events, and the fields of verdicts."""

    events: Sequence[Entry]
    verdicts: Sequence[VerdictFields]

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

    def selections(self) -> list[Selection]:
        """The selections among them, oldest first; raises as `moderation` does."""
        return [entry.selection for entry in self.events if entry.kind == SELECTION]


class _Moment(BaseModel):
    """When a verdict was made, read without the rest of it."""

    created_at: AwareDatetime


class _DoubtFields(BaseModel):
    code: str


class _Benchmark(BaseModel):
    mode: str
    weight: float | None = None
    roofline: Roofline | None = None
    peak_bytes: int | None = None


class _Parsed(BaseModel):
    """The keys of a verdict's document that are read here."""

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
    doubts: tuple[_DoubtFields, ...] = ()
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
        LedgerError: it was written by a version whose verdicts this one cannot read, or a number does not fit into the
            index.
    """
    try:
        parsed = _PARSED.validate_json(entry.document)
    except ValidationError as error:
        raise unreadable(entry, error) from error
    submission, score = parsed.submission, parsed.score
    fields = VerdictFields(
        seq=entry.seq,
        hash=entry.hash,
        run=parsed.run,
        outcome=parsed.outcome,
        author=submission.author,
        name=submission.name,
        language=submission.language,
        sha256=submission.sha256,
        created_at=parsed.created_at,
        median_ns=score.median_ns if score else None,
        low_ns=score.low_ns if score else None,
        high_ns=score.high_ns if score else None,
        confidence=score.confidence if score else None,
        share=_share(parsed.benchmarks),
        peak_bytes=_peak_bytes(parsed.benchmarks),
        doubts=",".join(doubt.code for doubt in parsed.doubts),
        effort=parsed.effort,
        duration_ns=parsed.duration_ns,
        modes=",".join(sorted({benchmark.mode for benchmark in parsed.benchmarks})),
        cases=len(parsed.benchmarks),
        speedups_json=_SPEEDUPS.dump_json(parsed.speedups).decode(),
        setting=Setting(
            problem=parsed.problem,
            environment=parsed.environment,
            protocol=parsed.protocol,
            timing=parsed.timing,
            ranked_timing=parsed.ranked_timing,
        ),
    )
    for name, value in fields._asdict().items():
        if isinstance(value, int) and not -(1 << 63) <= value < 1 << 63:  # SQLite's
            what = f"ledger entry {entry.seq}: {name}: {value} is too large"
            raise LedgerError(what, "read it with the version that wrote it")
    return fields


def _peak_bytes(cases: Sequence[_Benchmark]) -> int | None:
    peaks = [case.peak_bytes for case in cases if case.peak_bytes is not None]
    return max(peaks) if peaks and len(peaks) == len(cases) else None


def after(entry: Entry, until: datetime | None) -> bool:
    """Whether an entry is a verdict that was made after `until`; False if that is None."""
    if until is None or entry.kind != VERDICT:
        return False
    try:
        return _Moment.model_validate_json(entry.document).created_at > until
    except ValidationError:
        return False  # reading the verdict reports the error


def _share(cases: Sequence[_Benchmark]) -> float | None:
    shares = [case.roofline.share for case in cases if case.roofline is not None]
    if not shares or len(shares) < len(cases):
        return None
    return geometric_mean(shares, [case.weight or 1.0 for case in cases])
