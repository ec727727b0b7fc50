"""Exports the record for other programs, as Parquet and JSON lines: one row per verdict, and one per case of a verdict.

`kernelmark export` calls it. Trusted; what participants wrote (names, messages) is exported unchanged. The models below
are the schema: the columns of the Parquet files, the keys of the JSON lines and `schema.json` are derived from them.
Times are in nanoseconds per call. Ranks come from `ranking.rank`; a row without a rank has null.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path
from typing import Any, get_args

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import Field, create_model

from harness.verdict import FrozenModel, Interval, Verdict
from leaderboard.record.durable import write_whole, writing
from leaderboard.record.entry import VERDICT, Entry
from leaderboard.record.teams import NO_TEAMS, Teams
from leaderboard.standings.ranking import Row, Table
from leaderboard.text.metrics import METRICS, Column

_BATCH = 4096
_TYPES: dict[Any, Any] = {
    str: pa.string(),
    int: pa.int64(),
    float: pa.float64(),
    bool: pa.bool_(),
    datetime: pa.timestamp("us", tz="UTC"),
}


class VerdictRow(FrozenModel):
    """One recorded grading, accepted or not."""

    problem: str
    problem_sha256: str
    seq: int = Field(description="line number in the problem's ledger")
    run: str
    created_at: datetime
    outcome: str
    message: str = Field(description="one line; empty when accepted")
    author: str
    team: str | None = Field(description="the team that the author's runs rank for; null if the author is in none")
    submission: str = Field(description="the file's name as submitted")
    language: str
    submission_sha256: str
    size_bytes: int
    protocol: int
    timing: str = Field(description="how its cases were timed: replayed, calls, or, before protocol 5, sealed")
    ranked_timing: str = Field(description="how they must be timed to rank")
    device_kind: str
    device_name: str
    sandbox: str
    isolated: bool
    interpreted: bool
    driver: str | None
    cuda: str | None
    python: str
    torch: str
    triton: str | None
    effort: str
    duration_ns: int = Field(description="of the whole grading")
    median_ns: int | None = Field(
        description="score: geometric mean, over the benchmark cases, of the median time per call"
    )
    low_ns: int | None
    high_ns: int | None
    confidence: float | None
    rank: int | None = Field(description="rank of the row that this grading represents; null if it has none")
    state: str | None = Field(
        description="ranks, too_wide, not_replayed, known_inputs, disqualified or late; null if it is not in a table"
    )
    gradings: int | None = Field(description="number of gradings pooled in the row that this grading represents")
    pooled_median_ns: int | None = Field(description="pooled score of these gradings, which determines the rank")
    pooled_low_ns: int | None
    pooled_high_ns: int | None
    pooled_confidence: float | None
    stale: str | None = Field(description="what has changed since, if the row is out of date")


class _CaseRow(FrozenModel):
    """One case of one grading: a test (right or wrong, no time) or a benchmark (timed)."""

    problem: str
    run: str
    stage: str = Field(description="test or benchmark")
    position: int = Field(description="index of the case within its stage, from 0")
    name: str
    hidden: bool
    params: str = Field(description="the case's parameters as JSON; empty for a hidden case")
    outcome: str | None = Field(description="of a test; benchmarks exist only in accepted gradings")
    message: str | None
    mode: str | None = Field(description="mode of a benchmark: calls, replayed, or, before protocol 5, graphs")
    median_ns: int | None = Field(description="score of the case")
    low_ns: int | None
    high_ns: int | None
    confidence: float | None
    overhead_ns: int | None = Field(description="taken off the time of every round; null if replayed, like the next")
    overhead_error_ns: int | None = Field(description="how far it may be from the truth")
    rounds: int | None = Field(description="number of rounds, or of replayed calls")
    stop_reason: str | None


_METRICS: tuple[Column, ...] = tuple(column for metric in METRICS for column in metric.columns)
_METRIC_FIELDS: dict[str, Any] = {
    column.key: (column.type | None, Field(description=column.about)) for column in _METRICS
}
CaseRow = create_model("CaseRow", __base__=_CaseRow, __doc__=_CaseRow.__doc__, **_METRIC_FIELDS)


def schema() -> dict[str, Any]:
    """JSON Schemas of the two kinds of row, keyed by file name."""
    return {"verdicts": VerdictRow.model_json_schema(), "cases": CaseRow.model_json_schema()}


def export(
    entries: Iterable[Entry], tables: Iterable[Table], directory: Path, teams: Teams = NO_TEAMS
) -> tuple[int, int]:
    """Write `verdicts` and `cases`, each as `.parquet` and `.jsonl`, and `schema.json`; returns the two row counts.

    Raises:
        LedgerError: an entry cannot be read by this version.
        OSError: a file cannot be written; an existing file of that name is left unchanged.
    """
    standing: dict[str, Row] = {}
    for table in tables:
        standing.update({row.run: row for row in table.rows})
        standing.update({run.run: run for run in table.set_aside})
    with ExitStack() as stack:
        verdicts = _Sink(stack, directory / "verdicts", VerdictRow)
        cases = _Sink(stack, directory / "cases", CaseRow)
        for entry in entries:
            if entry.kind != VERDICT:
                continue
            verdict = entry.verdict
            verdicts.add(_verdict(verdict, entry.seq, standing.get(verdict.run), teams))
            for case in _cases(verdict):
                cases.add(case)
        verdicts.flush()
        cases.flush()
    text = json.dumps(schema(), indent=1, ensure_ascii=False) + "\n"
    write_whole(directory / "schema.json", text.encode(), replace=True)
    return verdicts.count, cases.count


def _score(score: Interval | None) -> dict[str, Any]:
    keys = ("median_ns", "low_ns", "high_ns", "confidence")
    return {key: getattr(score, key) if score is not None else None for key in keys}


def _verdict(verdict: Verdict, seq: int, standing: Row | None, teams: Teams) -> FrozenModel:
    submission, team = verdict.submission, teams.of(verdict.submission.author)
    row = standing if standing and standing.state not in ("disqualified", "late") else None
    named_alike = (
        (part, name) for part in (verdict, verdict.environment, submission) for name in VerdictRow.model_fields
    )
    return VerdictRow(
        **{
            **{name: getattr(part, name) for part, name in named_alike if name in type(part).model_fields},
            **_score(verdict.score),
            **{f"pooled_{key}": value for key, value in _score(row.score if row else None).items()},
            "problem": verdict.problem.slug,
            "problem_sha256": verdict.problem.sha256,
            "seq": seq,
            "outcome": verdict.outcome.value,
            "isolated": verdict.environment.isolated,
            "team": team.name if team else None,
            "submission": submission.name,
            "submission_sha256": submission.sha256,
            "rank": row.rank if row else None,
            "state": standing.state if standing else None,
            "gradings": row.gradings if row else None,
            "stale": row.stale.reason if row and row.stale else None,
        }
    )


def _cases(verdict: Verdict) -> Iterator[FrozenModel]:
    slug, run = verdict.problem.slug, verdict.run
    absent: dict[str, Any] = dict.fromkeys(CaseRow.model_fields)
    for position, test in enumerate(verdict.tests):
        values: dict[str, Any] = {
            "stage": "test",
            "name": test.name,
            "hidden": test.hidden,
            "params": json.dumps(test.params),
            "outcome": test.outcome.value,
            "message": test.message,
        }
        yield CaseRow(**{**absent, **values, "problem": slug, "run": run, "position": position})
    for position, timed in enumerate(verdict.benchmarks):
        values = {
            "stage": "benchmark",
            "name": timed.name,
            "hidden": False,
            "params": json.dumps(timed.params),
            "mode": timed.mode,
            "stop_reason": timed.stop_reason,
            "rounds": len(timed.calls.device_ns) if timed.mode == "replayed" else len(timed.rounds),
            **{column.key: column.value(timed) for column in _METRICS},
            **{name: getattr(timed, name, None) for name in ("overhead_ns", "overhead_error_ns")},
            **_score(timed.score),
        }
        yield CaseRow(**{**absent, **values, "problem": slug, "run": run, "position": position})


class _Sink:
    """Writes rows of one kind in both formats; the files get their names when `stack` closes without an error."""

    def __init__(self, stack: ExitStack, stem: Path, model: type[FrozenModel]) -> None:
        self.count = 0
        self._rows: list[FrozenModel] = []
        self._schema = pa.schema([_column(name, field.annotation) for name, field in model.model_fields.items()])
        self._lines = stack.enter_context(writing(stem.with_suffix(".jsonl")))
        table = stack.enter_context(writing(stem.with_suffix(".parquet")))
        self._parquet = stack.enter_context(pq.ParquetWriter(table, self._schema, compression="zstd"))

    def add(self, row: FrozenModel) -> None:
        self._rows.append(row)
        self.count += 1
        if len(self._rows) >= _BATCH:
            self.flush()

    def flush(self) -> None:
        self._lines.writelines(row.model_dump_json().encode() + b"\n" for row in self._rows)
        self._parquet.write_table(pa.Table.from_pylist([row.model_dump() for row in self._rows], self._schema))
        self._rows.clear()


def _column(name: str, annotation: Any) -> Any:
    """The Parquet column of a field: its type, and whether it is nullable."""
    types = [kind for kind in get_args(annotation) or (annotation,) if kind is not type(None)]
    return pa.field(name, _TYPES[types[0]], nullable=len(types) < len(get_args(annotation)))
