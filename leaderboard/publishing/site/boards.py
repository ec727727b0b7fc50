"""Data about boards for pages: baselines, times by case, leaders, record holders, and where runs stand.

The front page and the pages of problems, authors and runs use it. Trusted; pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from harness.stats import geometric_mean
from harness.verdict import Interval, PairedBaseline, Speedup
from harness.verdict.roofline import Calibration, choose
from leaderboard.publishing.site.book import Book, Placed
from leaderboard.publishing.site.document import (
    AcceptedRun,
    Board,
    Counts,
    First,
    Holder,
    Leader,
    Overall,
    RankedDevice,
)
from leaderboard.record.fields import TableKey, VerdictFields
from leaderboard.record.teams import Teams
from leaderboard.standings.ranking import Row

_COMPARED = ("compiled", "eager")  # a row in a list shows its speedup over the first of these that it has
_COUNTS = ("newer_grading", "other_source")
_ROWS, _FULL = 150, 4  # most rows of a current board on its problem's page, if there are no more boards than this
CASE_ROWS = 10  # the number of rows of a board that are shown case by case


def shown_rows(book: Book) -> int:
    """How many rows of each current board the problem's page shows, which keeps it below 300 KB."""
    return min(_ROWS, _FULL * _ROWS // max(1, len(book.current)))


def speedup(row: Row) -> Speedup | None:
    """The speedup over torch.compile, else over the eager baseline; None if the row was measured against neither."""
    known = {measured.baseline: measured for measured in row.speedups}
    return next((known[name] for name in _COMPARED if name in known), None)


def baselines(board: Board, book: Book) -> Iterator[Row]:
    """The organizers' kernels, with their times from the first row that was measured against them in every case."""
    for name in board.baseline_names:
        for row in (row for row in board.comparable if row.over(name) is not None):
            (verdict,) = book.of([row])
            found = [(paired(case.baselines, name), case.weight or 1.0) for case in verdict.benchmarks]
            measured = [(baseline, weight) for baseline, weight in found if baseline is not None]
            if measured and len(measured) == len(found):
                times = [max(1, baseline.time_ns) for baseline, _ in measured]
                mean = round(geometric_mean(times, [weight for _, weight in measured]))
                yield replace(
                    row,
                    rank=None,
                    author="baseline",
                    team=None,
                    submission=name,
                    language="",
                    sha256=measured[0][0].sha256,
                    score=Interval(median_ns=mean, low_ns=mean, high_ns=mean, confidence=row.score.confidence),
                    gradings=1,
                    speedups=(),
                    share=None,
                    state="ranks",
                    moderation=(),
                    stale=None,
                )
                break


def paired(among: Iterable[PairedBaseline], name: str) -> PairedBaseline | None:
    """The baseline of this name in a case; None if the case did not alternate with it."""
    return next((baseline for baseline in among if baseline.name == name), None)


class CaseTimes(NamedTuple):
    """The times of an author, a team or a baseline in a run, one for each case; None where a case was not timed."""

    name: str
    author: str
    """The author of the run, even in a team's row, since a plot's colours are those of authors; "" for a baseline."""
    run: str
    times: tuple[Interval | None, ...]

    @property
    def baseline(self) -> bool:
        return not self.author


def by_case(board: Board, book: Book, names: Sequence[str]) -> list[CaseTimes]:
    """The times of a board's first comparable rows in these cases, then those of its baselines."""
    rows = board.comparable[:CASE_ROWS] if names else ()
    found = []
    for row, verdict in zip(rows, book.of(rows), strict=True):
        scores = {case.name: case.score for case in verdict.benchmarks}
        found.append(CaseTimes(row.name, row.author, row.run, tuple(map(scores.get, names))))
    for row in board.baselines if names else ():
        (verdict,) = book.of([row])
        times = {
            case.name: Interval(median_ns=ns, low_ns=ns, high_ns=ns, confidence=case.score.confidence)
            for case in verdict.benchmarks
            if (baseline := paired(case.baselines, row.submission)) is not None
            for ns in (baseline.time_ns,)
        }
        found.append(CaseTimes(row.submission, "", row.run, tuple(map(times.get, names))))
    return found


class Stand(NamedTuple):
    """A run that has a page, and the row that counts on the board: its own, or another of its author or team."""

    line: VerdictFields
    counts: Counts
    placed: Placed

    @property
    def mark(self) -> str:
        """It changes with everything in `accepted_run`."""
        row = self.placed.row
        return f"{self.line.hash} {self.counts} {row.run} {row.rank} {self.placed.of} {self.placed.board.current}"

    def accepted_run(self) -> AcceptedRun:
        line, row, board = self.line, self.placed.row, self.placed.board
        return AcceptedRun(
            problem=board.key.problem,
            key=board.key,
            run=line.run,
            author=line.author,
            submission=line.name,
            score=line.score,
            created_at=line.created_at,
            counts=self.counts,
            row=row.run,
            rank=row.rank,
            state=row.state,
            of=self.placed.of,
            current=board.current,
        )


def stands(book: Book, teams: Teams) -> Iterator[Stand]:
    """The runs that have a page but are not on a board, with the rows that count instead.

    Rows that were set aside do not count.
    """
    others = [line for run, line in book.runs.items() if run not in book.placed]
    names = {teams.name_of(line.author) for line in others}
    rows: dict[tuple[TableKey, str], list[Placed]] = {}
    for placed in book.placed.values():
        if placed.row.name in names:
            rows.setdefault((placed.board.key, placed.row.name), []).append(placed)
    for line in others:
        if theirs := rows.get((line.setting.key, teams.name_of(line.author))):
            placed = min(theirs, key=lambda placed: _COUNTS.index(_counts(line, placed.row)))
            yield Stand(line, _counts(line, placed.row), placed)


def _counts(line: VerdictFields, row: Row) -> Counts:
    own = (row.author, row.sha256, row.comparable) == (line.author, line.sha256, line.ranks)
    return "newer_grading" if own else "other_source"


def leaders(book: Book) -> tuple[Leader, ...]:
    """The first rows of a problem's current boards; if those are empty, the first ranked row of the newest older one.

    The first row of a current board has no rank if all its rows are too wide to rank. A board on which nothing was
    timed as it requires has no first row, nor has one of Triton's interpreter, whose times say nothing about a kernel.
    """
    found = [
        Leader(key=board.key, current=board.current, row=first, records=board.records)
        for board in book.boards
        for first in board.comparable[:1]
        if not board.key.interpreted
    ]
    older = sorted(
        (leader for leader in found if leader.row.rank is not None),
        key=lambda leader: (leader.key.protocol, leader.row.created_at),
        reverse=True,
    )
    return tuple(leader for leader in found if leader.current) or tuple(older[:1])


def firsts(books: Iterable[Book]) -> Iterator[First]:
    """The first rows of the current boards."""
    for book in books:
        rows = {board.key: len(board.rows) for board in book.boards}
        for leader in leaders(book):
            if leader.current:
                yield First(problem=book.problem, rows=rows[leader.key], leader=leader)


def overall(books: Iterable[Book]) -> tuple[Overall, ...]:
    """Authors by the geometric mean of their shares of the roofline: per problem, the largest on its current boards.

    A team counts as one author, and Triton's interpreter does not count; an author without a share on any board is left
    out.
    """
    best: dict[str, dict[str, float]] = {}
    for book in books:
        for row in (row for board in book.current if not board.key.interpreted for row in board.ranked):
            if row.share:
                shares = best.setdefault(row.name, {})
                shares[book.problem] = max(row.share, shares.get(book.problem, 0.0))
    means = [
        Overall(author=author, share=geometric_mean(list(shares.values())), problems=len(shares))
        for author, shares in best.items()
    ]
    return tuple(sorted(means, key=lambda mean: (-mean.share, -mean.problems, mean.author)))


def holders(books: Iterable[Book], count: int) -> tuple[Holder, ...]:
    """The newest records of all problems, newest first.

    The first result of a board does not count as one, nor does any in Triton's interpreter.
    """
    records = [
        Holder(
            problem=book.problem,
            device_name=board.key.device_name,
            how_timed=board.key.how_timed,
            step=step,
            before_ns=before.score_ns,
        )
        for book in books
        for board in book.boards
        if not board.key.interpreted
        for before, step in zip(board.records, board.records[1:], strict=False)
    ]
    return tuple(sorted(records, key=lambda holder: (holder.step.at, holder.step.run), reverse=True)[:count])


def devices(books: Sequence[Book], calibrations: Sequence[Calibration]) -> tuple[RankedDevice, ...]:
    """Every device that has a board, GPUs first."""
    by_device: dict[tuple[bool, str], list[Board]] = {}
    for book in books:
        for board in book.boards:
            by_device.setdefault((board.key.device_kind == "cpu", board.key.device_name), []).append(board)
    return tuple(
        RankedDevice(
            name=name,
            kind="cpu" if is_cpu else "cuda",
            boards=len(boards),
            rows=sum(len(board.rows) for board in boards),
            problems=tuple(sorted({board.key.problem for board in boards})),
            calibration=choose(calibrations, name, None),
        )
        for (is_cpu, name), boards in sorted(by_device.items())
    )
