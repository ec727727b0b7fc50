"""Boards as pages show them: rows with their share of the roofline, baselines, and record holders.

The front page and the pages of problems and authors take their standings from here, as `rank` returned them. Trusted;
pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

from harness.files.identity import with_private_cases
from harness.stats import geometric_mean
from harness.verdict import Interval, Speedup
from harness.verdict.roofline import Calibration, choose
from leaderboard.publishing.site.digest import Board, LedgerDigest, Run
from leaderboard.publishing.site.document import BoardDocument, Device, First, Holder, Leader, Overall, Standing
from leaderboard.record.teams import Teams
from leaderboard.standings.pooling import COMPARABLE
from leaderboard.standings.ranking import Row, TableKey

_COMPARED = ("compiled", "eager")  # the baseline of a row in a list: the first of these that it was measured against
_COUNTS = ("itself", "newer_grading", "other_source")
CASE_ROWS = 10  # the first rows of a board, which are shown case by case


def documents(book: LedgerDigest, sha256: str | None) -> tuple[BoardDocument, ...]:
    """A problem's boards; those of the current version of the problem with the newest protocol are marked current."""
    newest = current(book, sha256)
    return tuple(
        BoardDocument(
            key=board.table.key,
            current=board.table.key in newest,
            rows=tuple(standing(row, book.runs.get(row.run)) for row in board.table.rows),
            baselines=tuple(baselines(board, book.runs)),
            records=board.records,
            private=board.table.private,
            set_aside=board.table.set_aside,
        )
        for board in book.boards
    )


def current(book: LedgerDigest, sha256: str | None) -> set[TableKey]:
    """The keys of the current boards; for a problem that no longer exists, those of its newest hash."""
    sha256 = sha256 or next((board.table.key.problem_sha256 for board in book.boards), None)
    tables = [board.table for board in book.boards if board.table.key.problem_sha256 == _now(board, sha256)]
    newest = next((table.key.problem_sha256 for table in tables if table.private is not None), None)
    hashes = [table.key.problem_sha256 for table in tables]  # newest first
    since = hashes.index(newest) if newest else len(hashes)
    keys = [table.key for place, table in enumerate(tables) if place < since or table.key.problem_sha256 == newest]
    return {key for key in keys if key.protocol == max(each.protocol for each in keys)}


def _now(board: Board, sha256: str | None) -> str | None:
    """The problem's current hash with the private cases of a board; the machine that builds may not have those."""
    private = board.table.private
    if sha256 is None or private is None or board.table.key.problem_sha256 == sha256:
        return sha256
    return with_private_cases(sha256, private.sha256)


def standing(row: Row, run: Run | None) -> Standing:
    """A row of the ranking, with its share of the roofline from the run."""
    return Standing(
        rank=row.rank,
        author=row.author,
        team=row.team,
        submission=row.submission,
        language=row.language,
        run=row.run,
        sha256=row.sha256,
        score=row.score,
        speedups=row.speedups,
        share=run.share if run is not None else None,
        modes=row.modes,
        sandbox=row.sandbox,
        created_at=row.created_at,
        gradings=row.gradings,
        state=row.state,
        moderation=row.moderation,
        stale=row.stale,
    )


def speedup(row: Standing) -> Speedup | None:
    """The speedup over torch.compile, else over the eager baseline; None if the row was measured against neither."""
    known = {each.baseline: each for each in row.speedups}
    return next((known[name] for name in _COMPARED if name in known), None)


def baselines(board: Board, runs: Mapping[str, Run]) -> Iterator[Standing]:
    """The organizers' kernels, with their times from the first row that was measured against them in every case."""
    for name in board.table.baselines:
        for row in board.table.comparable:
            run = runs.get(row.run)
            by_case = [(case.baselines.get(name), case.weight or 1.0) for case in run.cases] if run else []
            measured = [(each, weight) for each, weight in by_case if each is not None]
            if measured and len(measured) == len(by_case):
                times = [max(1, each.time_ns) for each, _ in measured]
                mean = round(geometric_mean(times, [weight for _, weight in measured]))
                score = Interval(median_ns=mean, low_ns=mean, high_ns=mean, confidence=row.score.confidence)
                sha256 = measured[0][0].sha256
                yield Standing(
                    rank=None, author="baseline", submission=name, language="", run=row.run, sha256=sha256,
                    score=score,
                )  # fmt: skip
                break


class CaseTimes(NamedTuple):
    """The times of an author, a team or a baseline in a run, one for each case; None where a case was not timed."""

    name: str
    author: str
    """Who wrote the run, in a team's row too: the plots' colours are authors'. Empty for a baseline."""
    run: str
    times: tuple[Interval | None, ...]

    @property
    def baseline(self) -> bool:
        return not self.author


def by_case(board: BoardDocument, runs: Mapping[str, Run], names: Sequence[str]) -> list[CaseTimes]:
    """The times of a board's first comparable rows in these cases, then those of its baselines."""
    found = []
    for row in board.comparable[:CASE_ROWS]:
        if row.run is not None and row.run in runs:
            scores = {case.name: case.score for case in runs[row.run].cases}
            name = row.team.name if row.team else row.author
            found.append(CaseTimes(name, row.author, row.run, tuple(map(scores.get, names))))
    for row in board.baselines:
        if row.run is not None and row.run in runs:
            times = {
                case.name: Interval(median_ns=ns, low_ns=ns, high_ns=ns, confidence=case.score.confidence)
                for case in runs[row.run].cases
                if row.submission in case.baselines
                for ns in (case.baselines[row.submission].time_ns,)
            }
            found.append(CaseTimes(row.submission, "", row.run, tuple(map(times.get, names))))
    return found


class Stand(NamedTuple):
    """Where an accepted run stands on its board, which has `of` ranks; `current` as in `BoardDocument`.

    `row` is its own row, or else the one of its author or team that counts instead of it.
    """

    run: Run
    row: Row
    of: int
    current: bool

    @property
    def counts(self) -> Literal["itself", "newer_grading", "other_source"]:
        """What counts on the board: the run, a newer grading of its source, or another source."""
        if self.row.run == self.run.run:
            return "itself"
        pooled = (self.row.author, self.row.sha256, self.row.state in COMPARABLE)
        own = pooled == (self.run.author, self.run.sha256, self.run.ranks)
        return "newer_grading" if own else "other_source"


def stands(book: LedgerDigest, sha256: str | None, teams: Teams) -> Iterator[Stand]:
    """Where the runs that have a page stand, newest first, other than those that were set aside."""
    newest = current(book, sha256)
    tables = {board.table.key: board.table for board in book.boards}
    rows: dict[tuple[TableKey, str], list[Row]] = {}
    for key, table in tables.items():
        for row in table.rows:
            rows.setdefault((key, teams.name_of(row.author)), []).append(row)
    for run in sorted(book.runs.values(), key=lambda run: (run.created_at, run.run), reverse=True):
        theirs = rows.get((run.key, teams.name_of(run.author)), [])
        found = [Stand(run, row, len(tables[run.key].ranked), run.key in newest) for row in theirs]
        yield from sorted(found, key=lambda each: _COUNTS.index(each.counts))[:1]


def leaders(book: LedgerDigest, sha256: str | None) -> tuple[Leader, ...]:
    """The first rows of a problem's current boards; if those are empty, the first ranked row of the newest older one.

    The first row of a current board has no rank if all its rows are too wide to rank. A board on which nothing was
    timed as it requires has no first row, nor has one of Triton's interpreter, whose times say nothing about a kernel.
    """
    newest = current(book, sha256)
    found = [
        Leader(
            key=board.table.key,
            current=board.table.key in newest,
            row=standing(first, book.runs.get(first.run)),
            records=board.records,
        )
        for board in book.boards
        for first in board.table.comparable[:1]
        if not board.table.key.interpreted
    ]
    older = sorted(
        (each for each in found if each.row.rank is not None),
        key=lambda each: (each.key.protocol, each.row.created_at),
        reverse=True,
    )
    return tuple(each for each in found if each.current) or tuple(older[:1])


def firsts(books: Iterable[tuple[LedgerDigest, str | None]]) -> Iterator[First]:
    """The first rows of the current boards; `books` as for `overall`."""
    for book, sha256 in books:
        rows = {board.table.key: len(board.table.rows) for board in book.boards}
        for leader in leaders(book, sha256):
            if leader.current:
                yield First(problem=book.problem, rows=rows[leader.key], leader=leader)


def overall(books: Iterable[tuple[LedgerDigest, str | None]]) -> tuple[Overall, ...]:
    """Authors by the geometric mean of their shares of the roofline: per problem, the largest on its current boards.

    A team counts as one author, and Triton's interpreter does not count. `books` are the ledgers with their problems'
    current hashes; an author without a share on any board is left out.
    """
    best: dict[str, dict[str, float]] = {}
    for book, sha256 in books:
        newest = current(book, sha256)
        measured = (board.table for board in book.boards if not board.table.key.interpreted)
        for row in (row for table in measured if table.key in newest for row in table.ranked):
            run = book.runs.get(row.run)
            if run is not None and run.share:
                shares = best.setdefault(row.team.name if row.team else row.author, {})
                shares[book.problem] = max(run.share, shares.get(book.problem, 0.0))
    means = [
        Overall(author=author, share=geometric_mean(list(shares.values()), [1.0] * len(shares)), problems=len(shares))
        for author, shares in best.items()
    ]
    return tuple(sorted(means, key=lambda each: (-each.share, -each.problems, each.author)))


def holders(books: Iterable[LedgerDigest], count: int) -> tuple[Holder, ...]:
    """The newest records of all problems, newest first.

    The first result of a board does not count as one, nor does any in Triton's interpreter.
    """
    records = [
        Holder(
            problem=book.problem,
            device_name=board.table.key.device_name,
            how_timed=board.table.key.how_timed,
            step=step,
            before_ns=before.score_ns,
        )
        for book in books
        for board in book.boards
        if not board.table.key.interpreted
        for before, step in zip(board.records, board.records[1:], strict=False)
    ]
    return tuple(sorted(records, key=lambda each: (each.step.at, each.step.run), reverse=True)[:count])


def devices(books: Sequence[LedgerDigest], calibrations: Sequence[Calibration]) -> tuple[Device, ...]:
    """Every device that has a board, GPUs first."""
    by_device: dict[tuple[str, str], list[Board]] = {}
    for book in books:
        for board in book.boards:
            key = board.table.key
            by_device.setdefault((key.device_name, key.device_kind), []).append(board)
    return tuple(
        Device(
            name=name,
            kind="cpu" if kind == "cpu" else "cuda",
            boards=len(boards),
            rows=sum(len(board.table.rows) for board in boards),
            problems=tuple(sorted({board.table.key.problem for board in boards})),
            calibration=choose(calibrations, name, None),
        )
        for (name, kind), boards in sorted(by_device.items(), key=lambda item: (item[0][1] == "cpu", item[0][0]))
    )
