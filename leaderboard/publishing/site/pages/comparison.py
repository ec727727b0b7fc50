"""Two runs of one board side by side: intervals case by case, and the diff of their sources.

Each row of a board has one with its neighbour, and one with the first. Trusted; pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, pairwise
from typing import Any

from markupsafe import Markup

from harness.verdict import Interval, Ratio
from leaderboard.publishing.site import boards, markup, paths, profiles
from leaderboard.publishing.site.digest import KERNELS, Board, LedgerDigest, Run, TimedCase
from leaderboard.publishing.site.document import CaseKernels, Compared, ComparisonDocument, Side
from leaderboard.publishing.site.folder import Page, as_text
from leaderboard.publishing.site.inputs import Site
from leaderboard.publishing.site.pages.kind import Kind
from leaderboard.standings.ranking import Row, TableKey
from leaderboard.text import kernels as kernel_table

_LINES = 1200  # maximum number of lines of a diff, which keeps a page below 300 KB
_FLAMES, _FLAME_BYTES, _ROWS_BYTES = 2, 24_000, 12_000  # of a side's profile, for the same reason
_KERNELS, _LETTERS = 120, 60  # rows of the table of kernels and length of a name, for the same reason
_LONGEST = 400_000  # maximum length of a source, in characters: difflib takes quadratic time

Shown = Markup | profiles.Table


def pages(site: Site) -> Iterator[Page]:
    for book in site.books:
        current = boards.current(book, site.sha256(book.problem))
        for board in book.boards:
            if board.table.key in current:
                for pair in pairs(board):
                    yield _page(site, book, board.table.key, pair)


def pairs(board: Board) -> Iterator[tuple[Row, Row]]:
    """The pairs of rows that are compared: each with the next, and each with the first; the better one comes first.

    Rows that were not timed as the board requires are compared with none.
    """
    rows = board.table.comparable
    yield from pairwise(rows)
    yield from ((rows[0], other) for other in rows[2:])


def _page(site: Site, book: LedgerDigest, key: TableKey, rows: tuple[Row, Row]) -> Page:
    """The page of two rows of the board with this key."""
    one, other = (book.runs[row.run] for row in rows)
    path = paths.comparison(one.run, other.run)
    hidden = site.hidden(book.problem)

    def make() -> tuple[ComparisonDocument, dict[str, Any]]:
        cases = tuple(compared(one, other))
        baseline, paired = _paired_over_all(rows)
        document = ComparisonDocument(
            problem=book.problem,
            key=key,
            one=_side(rows[0]),
            other=_side(rows[1]),
            faster=_ratio(rows[0].score, rows[1].score),
            paired=paired,
            baseline=baseline,
            cases=cases,
            kernels=tuple(_kernels(one, other)),
            diff=_difference(site, book.problem, one, other),
            hidden=hidden,
        )
        return document, {
            "title": site.titles.get(book.problem, book.problem),
            "wins": _wins(cases),
            "kernels": list(_launched(document.kernels))[:_KERNELS],
            "most_kernels": KERNELS,
            "paired": any(case.paired is not None for case in cases),
            "shown": _LINES,
            "profiles": list(_profiles(site, book.problem, one, other)),
        }

    scores = as_text([(row.score, row.gradings, row.speedups, row.team) for row in rows])
    profiled = as_text([site.profiles.get(run.run) for run in (one, other)])
    key_parts = (one.hash, other.hash, scores, hidden, profiled, site.titles.get(book.problem, ""))
    return site.page(path, "comparison.html", key_parts, make)


def compared(one: Run, other: Run) -> Iterator[Compared]:
    """Every case that both runs have."""
    cases = {case.name: case for case in other.cases}
    for case in one.cases:
        against = cases.get(case.name)
        if against is not None:
            name, paired = _paired(case, against)
            yield Compared(
                case=case.name,
                one=case.score,
                other=against.score,
                faster=_ratio(case.score, against.score),
                paired=paired,
                baseline=name,
            )


def _wins(cases: Iterable[Compared]) -> dict[str, int]:
    """In how many cases each side is shown to be faster."""
    judged = [ratio for case in cases if (ratio := case.paired or case.faster) is not None]
    return {"A": sum(ratio.low > 1 for ratio in judged), "B": sum(ratio.high < 1 for ratio in judged)}


def _kernels(one: Run, other: Run) -> Iterator[CaseKernels]:
    """What a call launches, for the cases that both runs have, if the calls of either were replayed."""
    cases = {case.name: case for case in other.cases}
    for case in one.cases:
        against = cases.get(case.name)
        if against is not None and (case.kernels or against.kernels):
            yield CaseKernels(case=case.name, one=case.kernels, other=against.kernels)


def _launched(cases: Iterable[CaseKernels]) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """The rows of the table of kernels: case, side and cells."""
    for case in cases:
        for mark, kernels in (("A", case.one), ("B", case.other)):
            yield from ((case.case, mark, kernel_table.cells(kernel, _LETTERS)) for kernel in kernels)


def _ratio(one: Interval, other: Interval) -> Ratio | None:
    if not one.low_ns or not other.low_ns:
        return None
    return Ratio(
        median=other.median_ns / one.median_ns,
        low=other.low_ns / one.high_ns,
        high=other.high_ns / one.low_ns,
        confidence=min(one.confidence, other.confidence),
    )


def _paired(one: TimedCase, other: TimedCase) -> tuple[str | None, Ratio | None]:
    """The ratio through the first baseline that both alternated with, if its source is the same in both."""
    for name, mine in sorted(one.baselines.items()):
        theirs = other.baselines.get(name)
        if theirs is not None and theirs.sha256 == mine.sha256:
            return name, _over(mine.speedup, theirs.speedup)
    return None, None


def _paired_over_all(rows: tuple[Row, Row]) -> tuple[str | None, Ratio | None]:
    """The same over all cases, by the rows' speedups; none if one of them pools gradings, which its speedups do not."""
    if max(row.gradings for row in rows) > 1:
        return None, None
    others = {each.baseline: each for each in rows[1].speedups}
    for mine in sorted(rows[0].speedups, key=lambda each: each.baseline):
        theirs = others.get(mine.baseline)
        if theirs is not None and theirs.sha256 == mine.sha256:
            return mine.baseline, _over(mine.ratio, theirs.ratio)
    return None, None


def _over(one: Ratio, other: Ratio) -> Ratio:
    """The second's time over the first's, from their speedups over the same baseline."""
    return Ratio(
        median=one.median / other.median,
        low=one.low / other.high,
        high=one.high / other.low,
        confidence=min(one.confidence, other.confidence),
    )


def _difference(site: Site, problem: str, one: Run, other: Run) -> tuple[str, ...] | None:
    sources = site.sources(problem, one), site.sources(problem, other)
    if sources[0] is None or sources[1] is None:
        return None
    texts = _joined(sources[0]), _joined(sources[1])
    if max(map(len, texts)) > _LONGEST:
        return None
    return markup.difference(*texts, (f"{one.author}/{one.name}", f"{other.author}/{other.name}"))


def _joined(sources: Mapping[str, str]) -> str:
    """One text: the source, and each file beside it under a line with its name."""
    own, *others = sources.values()
    _, *names = sources
    return "\n".join([own, *(f"==== {name} ====\n{text}" for name, text in zip(names, others, strict=True))])


def _profiles(site: Site, problem: str, one: Run, other: Run) -> Iterator[tuple[str, Run, str, Shown]]:
    """The flame graphs and small tables of both runs' profiles, those with the same name one after the other."""
    sides = []
    for mark, run in (("A", one), ("B", other)):
        profiled = site.profiles.get(run.run)
        found = site.profile(problem, run) if profiled is not None and profiled.digest else None
        if found is not None:
            sides.append((mark, run, found, profiles.tables(found, _ROWS_BYTES)))
    for name in _names([list(found.stacks) for _, _, found, _ in sides])[:_FLAMES]:
        for mark, run, found, _ in sides:
            if name in found.stacks:
                yield mark, run, name, profiles.flame(found, name, max_bytes=_FLAME_BYTES, style=False)
    for name in _names([[table.name for table in tables] for *_, tables in sides]):
        for mark, run, _, tables in sides:
            yield from ((mark, run, name, table) for table in tables if table.name == name)


def _names(of_sides: Iterable[Iterable[str]]) -> list[str]:
    return list(dict.fromkeys(chain.from_iterable(of_sides)))


def _side(row: Row) -> Side:
    return Side(
        run=row.run,
        author=row.author,
        team=row.team,
        submission=row.submission,
        language=row.language,
        score=row.score,
        gradings=row.gradings,
    )


KIND = Kind(pages, (ComparisonDocument,))
