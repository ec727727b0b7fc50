"""Renders the board as Markdown, with a page for each problem, and writes the board's file atomically.

The page has more detail than the board, which links to it: the time of each case, and baselines. `kernelmark` publishes
with it. Trusted code, but the names of submitted files are hostile: every character of a name must be shown as itself,
never as a column, a link or HTML. Nothing here depends on the time of day, so an unchanged ledger gives an unchanged
file.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path

from harness.errors import HarnessError
from harness.verdict import BenchmarkResult, Verdict
from leaderboard.record.durable import write_whole
from leaderboard.record.entry import VERDICT, Entry
from leaderboard.record.moderation import Moderation
from leaderboard.record.pooling import WIDEST
from leaderboard.standings.ranking import ACROSS_CARDS, Row, Table
from leaderboard.text.metrics import METRICS
from leaderboard.text.plural import counted
from leaderboard.text.units import date, duration, interval, ratio
from leaderboard.text.visible import escaped

_COLUMNS = ("rank", "author", "submission", "language", "time per call")
_MORE_COLUMNS = ("cases", "mode", "sandbox", "date (UTC)", "kernel", "run")
_RIGHT = {"rank", "time per call", "cases"}
LEGEND = (
    "A time is the geometric mean over the benchmark cases of the median time per call, with its confidence interval. "
    "Several gradings of one source are pooled into one time; run, date and cases are those of the newest grading. "
    "Rows share a rank when their interval overlaps that of the first row of this rank. "
    f"Times of two devices of one name count as overlapping unless they are more than {ACROSS_CARDS} apart. "
    f"A row whose upper bound is more than {WIDEST:g} times its lower bound has no rank; more gradings usually narrow "
    "it. In a table of replayed calls, a row whose calls could not be replayed has no rank, and stands last. "
    "Before protocol 5, the submission's own process reported the times of sealed rounds, within bounds. "
    "A column × shows how many times faster than a baseline a submission was: the geometric mean over the cases, with "
    "its confidence interval, of ratios taken pair by pair from rounds or calls that alternated in the same grading.\n"
)
_BASELINES = (
    "Rows in italics are the organizers' kernels, timed in alternation with the first row measured against them.\n"
)
DETAILED = 100  # rows with a time per case: nobody reads more of them, and code hosts do not render longer pages
FOLDER = "boards"  # holds the problems' own pages, next to the board
_SECTION = re.compile(r"## \[[^\n]*\]\(boards/([a-z0-9_]{1,64})\.md\)\n")
_OURS = re.compile(r"\||### |Set aside, without a rank:$|$")
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "|": "&#124;", '"': "&quot;"}
_INVISIBLE = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
_Cell = Callable[[BenchmarkResult], str]


def board(tables: Iterable[Table], title: str = "") -> str:
    """The whole board, with one section per problem, in the order of the tables, under the title of the course."""
    by_problem = groupby(tables, key=lambda table: table.key.problem)
    return _joined({slug: section(slug, group) for slug, group in by_problem}, title)


def _head(title: str) -> str:
    return f"# {escape(title) or 'Leaderboard'}\n"


def section(problem: str, tables: Iterable[Table]) -> str:
    """One problem's section of the board, with a link to the problem's own page."""
    parts = [f"## [{escape(problem)}]({FOLDER}/{problem}.md)\n"]
    for table in tables:
        parts.append(f"### {heading(table)}\n")
        parts += standings(table)
    return "\n".join(parts)


def spliced(old: str, problem: str, tables: Sequence[Table], title: str = "") -> str | None:
    """A board with one problem's section replaced, so that an append costs no more than rendering its own problem.

    None if any line of `old` is not one that this version writes (an edit, another version or title, or git's conflict
    markers): then the whole board must be rendered again.
    """
    head, *rest = re.split(r"^(?=## )", old, flags=re.MULTILINE)
    if head != f"{_head(title)}\n{LEGEND}\n":
        return None
    sections = {}
    for text in rest:
        named = _SECTION.match(text)
        if named is None or not all(_OURS.match(line) for line in text.splitlines()[1:]):
            return None
        sections[named[1]] = text.removesuffix("\n") if text is not rest[-1] else text
    sections.pop(problem, None)
    if tables:
        sections[problem] = section(problem, tables)
    return _joined(dict(sorted(sections.items())), title)


def _joined(sections: Mapping[str, str], title: str) -> str:
    if not sections:
        return f"{_head(title)}\nNo submission has been accepted yet.\n"
    return "\n".join([_head(title), LEGEND, *sections.values()])


def standings(table: Table, more: Mapping[str, str] | None = None) -> Iterator[str]:
    """The rows of a table, and the runs set aside; `more` adds a column of the caller's Markdown, keyed by run."""
    noted = any(map(_note, table.rows))
    if table.rows:
        columns = [*_COLUMNS, *(f"× {escape(name)}" for name in table.baseline_names), *_MORE_COLUMNS]
        columns += ["source"] if more is not None else []
        columns += ["note"] if noted else []
        lines = [_cells(row, table.baseline_names) for row in table.rows]
        for row, line in zip(table.rows, lines, strict=True):
            line += [more.get(row.run, "")] if more is not None else []
            line += [_note(row)] if noted else []
        yield grid(columns, lines)
    if table.set_aside:
        yield "Set aside, without a rank:\n"
        head = ("state", "author", "submission", "time per call", "date (UTC)", "run", "what was said")
        yield grid(head, ([*_aside(run), _said(run.moderation)] for run in table.set_aside))


def grid(columns: Sequence[str], lines: Iterable[Sequence[str]], right: Container[int] = ()) -> str:
    """A table of cells that are already Markdown; numbers and the columns in `right` are right-aligned."""
    flushed = (name in _RIGHT or name.startswith("×") or place in right for place, name in enumerate(columns))
    rules = ("---:" if right_aligned else ":---" for right_aligned in flushed)
    rows = "".join(f"| {' | '.join(line)} |\n" for line in lines)
    return f"| {' | '.join(columns)} |\n|{'|'.join(rules)}|\n{rows}"


def write_board(path: Path, text: str) -> None:
    """Replace the board's file in one step: a reader sees either the old text or the new one.

    Raises:
        HarnessError: it cannot be written; the old file is unchanged.
    """
    try:
        write_whole(path, text.encode(), replace=True)
    except OSError as error:
        raise HarnessError(f"{path}: the board cannot be written ({error.strerror})") from error


def escape(text: str) -> str:
    """Escape text so that Markdown and HTML render exactly these characters in a paragraph, a heading or a table cell.

    Invisible characters (line breaks, controls, direction marks) are written as their code, `\\x0a`.
    """
    escaped = "".join(_escape_character(character) for character in text)
    return re.sub(r"(?i)www\.", lambda found: found[0][:3] + "\\.", escaped)  # GitHub makes links of bare addresses


def _escape_character(character: str) -> str:
    if character in _ENTITIES:
        return _ENTITIES[character]
    if unicodedata.category(character) in _INVISIBLE:
        return f"\\{escaped(character)}"
    return "\\" + character if character in "\\`*_{}[]()#+!~$:/@^=" else character


def heading(table: Table) -> str:
    key = table.key
    parts = [escape(key.device_name), *([key.how_timed] if key.how_timed else [])]
    parts += [f"protocol {key.protocol}", f"problem {key.problem_sha256[:12]}"]
    if table.private and table.private.cases:
        parts.append(counted(table.private.cases, "private case"))
    if table.cards > 1:
        parts.append(f"{table.cards} devices of this name")
    if not key.isolated:
        parts.append("not isolated")
    if key.interpreted:
        parts.append("Triton interpreter: not a measure of speed")
    return " · ".join(parts)


def _cells(row: Row, baselines: Sequence[str]) -> list[str]:
    speedups = (row.over(name) for name in baselines)
    return [
        rank_cell(row),
        escape(row.who),
        escape(row.submission),
        row.language,
        interval(row.score),
        *(ratio(speedup) if speedup else "" for speedup in speedups),
        str(row.cases),
        ", ".join(row.modes),
        row.sandbox,
        date(row.created_at),
        row.sha256[:12],
        row.run,
    ]


def _aside(run: Row) -> list[str]:
    who = (escape(run.who), escape(run.submission))
    return [run.state, *who, interval(run.score), date(run.created_at), run.run]


def rank_cell(row: Row) -> str:
    """A row's rank as a cell; empty if it has none."""
    return "" if row.rank is None else str(row.rank)


def _note(row: Row) -> str:
    """The notes on a row: why it has no rank, pooled, stale, and what organizers said about it."""
    notes = [row.no_rank] if row.no_rank else []
    if row.gradings > 1:
        notes.append(f"{row.gradings} gradings pooled")
    if row.stale is not None:
        again = f", graded again as {row.stale.again}" if row.stale.again else ""
        notes.append(f"stale: {escape(row.stale.reason)}{again}")
    return "; ".join([*notes, *([_said(row.moderation)] if row.moderation else [])])


def _said(events: Iterable[Moderation]) -> str:
    return "; ".join(
        f"{event.action}: {event.subject}{escape(event.reason)} ({escape(event.actor)})" for event in events
    )


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
