"""Parses only the keys of a verdict that the ranking needs, since a ledger can have a hundred thousand lines.

Trusted, over intact documents: their hashes were checked.
"""

from __future__ import annotations

from contextlib import suppress
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
from leaderboard.record.entry import Entry, unreadable


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


class _Doubt(BaseModel):
    code: str


class Ranked(BaseModel):
    """The keys of a verdict that decide its place."""

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

    @model_validator(mode="after")
    def _only_version_1_leaves_timings_out(self) -> Self:
        if self.schema_version > 1 and not {"timing", "ranked_timing"} <= self.model_fields_set:
            raise ValueError("timing and ranked_timing are required")
        return self

    @property
    def ranks(self) -> bool:
        """As `Verdict.ranks`."""
        return self.no_rank is None

    @property
    def no_rank(self) -> NoRank | None:
        """As `Verdict.no_rank`."""
        return no_rank(self.ranked_timing in (None, self.timing), (each.code for each in self.doubts))

    @property
    def question(self) -> Question:
        ran = self.environment
        return Question(
            problem=self.problem.slug,
            problem_sha256=self.problem.sha256,
            protocol=self.protocol,
            timing=self.ranked_timing or self.timing,
            device_kind=ran.device_kind,
            device_name=ran.device_name,
            isolated=ran.isolated,
            interpreted=ran.interpreted,
        )


class _Benchmark(BaseModel):
    mode: str


class RowDetails(BaseModel):
    """The keys of a verdict that a row shows besides."""

    benchmarks: tuple[_Benchmark, ...]
    effort: Effort = "default"
    speedups: tuple[Speedup, ...] = ()


_RANKED = TypeAdapter(Ranked)
_DETAILS = TypeAdapter(RowDetails)
_BULK = ((b',"benchmarks":[', b'],"score":{'), (b',"seeds":[', b',"schema_version":'))  # the larger first


def parse_ranking_fields(entry: Entry) -> Ranked:
    """Parse the keys that decide a place: first without the bulk, then from the whole document if a key is missing.

    Raises:
        LedgerError: it was written by a version whose verdicts this one cannot read.
    """
    with suppress(ValidationError):
        verdict = _RANKED.validate_json(_without_bulk(entry.document))
        if verdict.outcome is not Outcome.ACCEPTED or verdict.score is not None:
            return verdict
    try:
        return _RANKED.validate_json(entry.document)
    except ValidationError as error:
        raise unreadable(entry, error) from error


def parse_row_details(entry: Entry) -> RowDetails:
    """Parse what a row shows besides, from the whole document; only called for verdicts that get a row.

    Raises:
        LedgerError: as for `parse_ranking_fields`.
    """
    try:
        return _DETAILS.validate_json(entry.document)
    except ValidationError as error:
        raise unreadable(entry, error) from error


def _without_bulk(document: bytes) -> bytes:
    """The document without its bulk: most of its bytes, none of which decide a place.

    Quotes inside a JSON string are escaped, so these bytes occur only at the keys. If the keys are in another order,
    too much is cut: then a required key is missing, or the rest is not valid JSON.
    """
    for first, last in _BULK:
        start, end = document.find(first), document.rfind(last)
        if 0 < start < end:
            document = document[:start] + document[end + last.index(b",") :]
    return document
