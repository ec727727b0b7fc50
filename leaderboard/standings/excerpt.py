"""What the ranking reads of a verdict: a few keys, without making objects of the rest of a hundred thousand lines.

Trusted, over documents that are intact: their hashes were checked.
"""

from __future__ import annotations

from contextlib import suppress

from pydantic import AwareDatetime, BaseModel, TypeAdapter, ValidationError

from harness.verdict import (
    DeviceKind,
    Effort,
    Environment,
    Interval,
    Outcome,
    ProblemId,
    SchemaVersion,
    Speedup,
    SubmissionId,
    Timing,
)
from leaderboard.record.entry import Entry, unreadable

Question = tuple[str, str, int, Timing, DeviceKind, str, bool, bool]


class Ranked(BaseModel):
    """The keys of a verdict that decide where it stands."""

    schema_version: SchemaVersion
    outcome: Outcome
    problem: ProblemId
    submission: SubmissionId
    environment: Environment
    protocol: int
    run: str
    created_at: AwareDatetime
    timing: Timing = "sealed"
    score: Interval | None = None

    @property
    def question(self) -> Question:
        """Which table its time belongs to: what `ranking.TableKey` names, in its order."""
        problem, ran = self.problem, self.environment
        device = (ran.device_kind, ran.device_name)
        return (problem.slug, problem.sha256, self.protocol, self.timing, *device, ran.isolated, ran.interpreted)


class _Benchmark(BaseModel):
    mode: str


class RowDetails(BaseModel):
    """What a row tells besides."""

    benchmarks: tuple[_Benchmark, ...]
    effort: Effort = "default"
    speedups: tuple[Speedup, ...] = ()


_RANKED = TypeAdapter(Ranked)
_DETAILS = TypeAdapter(RowDetails)
_BULK = ((b',"benchmarks":[', b'],"score":{'), (b',"seeds":[', b',"schema_version":'))  # the larger first


def parse_ranking_fields(entry: Entry) -> Ranked:
    """Parse what decides a place: first without the bulk, and whole when something turns out to be missing.

    Raises:
        LedgerError: a version wrote it whose verdicts this one cannot read.
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
    """Parse what a row tells besides, from the whole document: only for the verdicts that get a row.

    Raises:
        LedgerError: as for `parse_ranking_fields`.
    """
    try:
        return _DETAILS.validate_json(entry.document)
    except ValidationError as error:
        raise unreadable(entry, error) from error


def _without_bulk(document: bytes) -> bytes:
    """The document less its tests, log and benchmarks: most of its bytes, none of which decides a place.

    Inside a JSON string a quote has a backslash before it, so these bytes stand only where the keys do. In a document
    with its keys in another order too much is cut: then a needed key is missing, or it is no JSON any more.
    """
    for first, last in _BULK:
        start, end = document.find(first), document.rfind(last)
        if 0 < start < end:
            document = document[:start] + document[end + last.index(b",") :]
    return document
