"""One problem's board as Markdown, with more detail than the main board: the time of each case, and baselines.

`kernelmark` publishes it next to `BOARD.md`, which links to it. Trusted code over hostile names, as in `markdown`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from harness.verdict import BenchmarkResult, Verdict
from leaderboard.publishing.markdown import LEGEND, escape, grid, heading, rank_cell, standings
from leaderboard.record.entry import VERDICT, Entry
from leaderboard.standings.ranking import Row, Table
from leaderboard.text.metrics import METRICS
from leaderboard.text.units import duration, interval, ratio

_BASELINES = (
    "Rows in italics are the organizers' kernels, timed in alternation with the first row measured against them.\n"
)
DETAILED = 100  # rows with a time per case: nobody reads more of them, and code hosts do not render longer pages
_Cell = Callable[[BenchmarkResult], str]


def page(
    problem: str, tables: Iterable[Table], entries: Iterable[Entry], links: Mapping[str, str], schedule: str = ""
) -> str:
    """The whole page; `entries` are the problem's ledger, `links` maps runs to the sources that may be shown, and
    `schedule` says until when submissions are accepted.

    Raises:
        LedgerError: a verdict in a table cannot be read by this version.
    """
    tables = list(tables)
    standing = {row.seq for table in tables for row in table.rows[:DETAILED]}
    verdicts = {e.seq: e.verdict for e in entries if e.seq in standing and e.kind == VERDICT}
    parts = [f"# {escape(problem)}\n", *([f"Open {escape(schedule)}.\n"] if schedule else []), LEGEND]
    for table in tables:
        parts.append(f"## {heading(table)}\n")
        sources = {row.run: f"[source]({links[row.run]})" for row in table.rows if row.run in links}
        parts += standings(table, sources if sources else None)
        parts += _details(table, [(row, verdicts[row.seq]) for row in table.rows[:DETAILED]])
    if not tables:
        parts.append("No submission has been accepted yet.\n")
    return "\n".join(parts)


def _details(table: Table, rows: list[tuple[Row, Verdict]]) -> Iterator[str]:
    if not rows:
        return
    baselines = [name for name in table.baseline_names if any(row.over(name) for row, _ in rows)]
    first = f" (the first {DETAILED} of {len(table.rows)} rows)" if len(rows) < len(table.rows) else ""
    newest = ", in the newest grading of each" if any(row.gradings > 1 for row, _ in rows) else ""
    yield f"Time per call, case by case{newest}{first}:\n"
    yield _by_case(rows, lambda case: interval(case.score), extra=_baseline_times(baselines, rows))
    if baselines:
        yield _BASELINES
    for name in baselines:
        measured = [(row, verdict) for row, verdict in rows if row.over(name)]
        yield f"× {escape(name)}, case by case:\n"
        yield _by_case(measured, lambda case, name=name: _speedup(case, name))  # type: ignore[misc]
    for metric in METRICS:
        having = [(row, verdict) for row, verdict in rows if any(map(metric.cell, verdict.benchmarks))]
        if metric.in_tables and having:
            yield f"{metric.title}, case by case:\n"
            yield _by_case(having, metric.cell)


def _by_case(rows: list[tuple[Row, Verdict]], cell: _Cell, extra: Iterable[tuple[str, Mapping[str, str]]] = ()) -> str:
    """A table with one column per case; a row that lacks a case (another version wrote it) has an empty cell."""
    names = list(dict.fromkeys(case.name for _, verdict in rows for case in verdict.benchmarks))
    lines = []
    for row, verdict in rows:
        cells = {case.name: cell(case) for case in verdict.benchmarks}
        lines.append([rank_cell(row), escape(row.who), *(cells.get(name, "") for name in names)])
    lines += [["", f"*{escape(who)}*", *(cells.get(name, "") for name in names)] for who, cells in extra]
    return grid(["rank", "author", *(escape(name) for name in names)], lines, right=range(2, 2 + len(names)))


def _baseline_times(names: Iterable[str], rows: list[tuple[Row, Verdict]]) -> Iterator[tuple[str, dict[str, str]]]:
    for name in names:
        first = next((verdict for row, verdict in rows if row.over(name) and verdict.ranks), None)
        if first is not None:
            paired = ((case.name, other) for case in first.benchmarks for other in case.baselines if other.name == name)
            yield name, {case: duration(other.time_ns) for case, other in paired}


def _speedup(case: BenchmarkResult, name: str) -> str:
    return next((ratio(other.speedup) for other in case.baselines if other.name == name), "")
