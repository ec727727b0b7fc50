"""Two runs of one board side by side: intervals case by case, and the diff of their sources.

Each row that a problem's page shows is compared with the next, and with the first. Trusted; pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import chain, pairwise
from typing import Any

from markupsafe import Markup

from harness.verdict import BenchmarkResult, Interval, LaunchedKernel, Ratio, Verdict
from leaderboard.publishing.site import boards, markup, paths, profiles
from leaderboard.publishing.site.book import Book
from leaderboard.publishing.site.document import Board, CaseKernels, Compared, ComparisonDocument
from leaderboard.publishing.site.folder import Page, as_text
from leaderboard.publishing.site.inputs import Kind, Site
from leaderboard.standings.ranking import CARD, Row
from leaderboard.text import kernels as kernel_table
from leaderboard.text.visible import shortened

_LINES = 1200  # maximum number of lines of a diff, which keeps a page below 300 KB
_FLAMES, _FLAME_BYTES, _ROWS_BYTES = 2, 24_000, 12_000  # of a side's profile, for the same reason
_KERNELS, _LETTERS = 120, 60  # rows of the table of kernels and length of a name, for the same reason
_OF_CASE, _KEPT, _TAIL = 4, 120, 40  # kernels of a case, and letters of a name in the JSON, those at its end included
_LONGEST = 400_000  # maximum length of a source, in characters: difflib takes quadratic time

Shown = Markup | profiles.SmallTable
_Speedups = Mapping[str, tuple[str, Ratio]]  # by baseline: the hash of its source, and the speedup


def pages(site: Site) -> Iterator[Page]:
    for book in site.books:
        for board in book.current:
            for pair in pairs(board, boards.shown_rows(book)):
                yield _page(site, book, board, pair)


def pairs(board: Board, shown: int) -> Iterator[tuple[Row, Row]]:
    """The pairs of rows to compare among the first `shown`: each row with the first and with the one before it.

    The better row of a pair comes first. A row that was not timed as the board requires is in no pair. Pairs with a row
    in common are close together, so that its verdict is read once.
    """
    rows = [row for row in board.rows[:shown] if row.comparable]
    for before, row in pairwise(rows):
        yield before, row
        if before is not rows[0]:
            yield rows[0], row


def _page(site: Site, book: Book, board: Board, ranked: tuple[Row, Row]) -> Page:
    """The page of two rows of a board."""
    path = paths.comparison(ranked[0].run, ranked[1].run)
    hidden = site.hidden(book.problem)

    def make() -> tuple[ComparisonDocument, dict[str, Any]]:
        # A page of two runs does not change with the rest of the board.
        rows = replace(ranked[0], rank=None, stale=None), replace(ranked[1], rank=None, stale=None)
        one, other = book.of(rows)
        cases = tuple(compared(one, other))
        baseline, ratio = _paired_over_all(rows)
        document = ComparisonDocument(
            problem=book.problem,
            key=board.key,
            one=rows[0],
            other=rows[1],
            faster=_ratio(rows[0].score, rows[1].score, {row.card for row in rows}),
            paired=ratio,
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
            "most_kernels": _OF_CASE,
            "paired": any(case.paired is not None for case in cases),
            "shown": _LINES,
            "profiles": list(_profiles(site, book, rows)),
        }

    profiled = [site.profiles.get(row.run) for row in ranked]
    marks = [book.placed[row.run].mark for row in ranked] + [as_text(profiled) if any(profiled) else ""]
    marks += [site.source_mark(book.problem, book.runs[row.run]) for row in ranked]
    return site.page(path, "comparison.html", [*marks, hidden, site.titles.get(book.problem, "")], make)


def compared(one: Verdict, other: Verdict) -> Iterator[Compared]:
    """Every case that both runs have."""
    cards = {verdict.environment.device_uuid_sha256 for verdict in (one, other)}
    for case, against in _common(one, other):
        name, ratio = _paired(case, against)
        yield Compared(
            case=case.name,
            one=case.score,
            other=against.score,
            faster=_ratio(case.score, against.score, cards),
            paired=ratio,
            baseline=name,
        )


def _common(one: Verdict, other: Verdict) -> Iterator[tuple[BenchmarkResult, BenchmarkResult]]:
    cases = {case.name: case for case in other.benchmarks}
    yield from ((case, cases[case.name]) for case in one.benchmarks if case.name in cases)


def _wins(cases: Iterable[Compared]) -> dict[str, int]:
    """In how many cases each side is shown to be faster."""
    judged = [ratio for case in cases if (ratio := case.paired or case.faster) is not None]
    return {"A": sum(ratio.low > 1 for ratio in judged), "B": sum(ratio.high < 1 for ratio in judged)}


def _kernels(one: Verdict, other: Verdict) -> Iterator[CaseKernels]:
    """The kernels that a call launches, for the cases that both runs have, if the calls of either were replayed."""
    for case, against in _common(one, other):
        mine, theirs = _longest(case), _longest(against)
        if mine or theirs:
            yield CaseKernels(case=case.name, one=mine, other=theirs)


def _longest(case: BenchmarkResult) -> tuple[LaunchedKernel, ...]:
    """The kernels that take longest, with shortened names; none if the calls were not replayed."""
    kernels = case.kernels if case.mode == "replayed" else ()
    first = sorted(kernels, key=lambda kernel: -(kernel.time_ns or 0))[:_OF_CASE]
    return tuple(kernel.model_copy(update={"name": shortened(kernel.name, _KEPT, _TAIL)}) for kernel in first)


def _launched(cases: Iterable[CaseKernels]) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """The rows of the table of kernels: case, side and cells."""
    for case in cases:
        for mark, kernels in (("A", case.one), ("B", case.other)):
            yield from ((case.case, mark, kernel_table.cells(kernel, _LETTERS)) for kernel in kernels)


def _ratio(one: Interval, other: Interval, cards: set[str | None]) -> Ratio | None:
    """The second's time over the first's. The interval across two cards includes what cards may differ by."""
    if not one.low_ns or not other.low_ns:
        return None
    allowed = CARD if len(cards) > 1 else 1.0
    return Ratio(
        median=other.median_ns / one.median_ns,
        low=other.low_ns / one.high_ns / allowed,
        high=other.high_ns / one.low_ns * allowed,
        confidence=min(one.confidence, other.confidence),
    )


def _paired(one: BenchmarkResult, other: BenchmarkResult) -> tuple[str | None, Ratio | None]:
    return _through(*({paired.name: (paired.sha256, paired.speedup) for paired in b.baselines} for b in (one, other)))


def _paired_over_all(rows: tuple[Row, Row]) -> tuple[str | None, Ratio | None]:
    """The ratio from the rows' speedups; None if a row pools gradings, since its speedups are of one grading."""
    if max(row.gradings for row in rows) > 1:
        return None, None
    return _through(*({over.baseline: (over.sha256, over.ratio) for over in row.speedups} for row in rows))


def _through(one: _Speedups, other: _Speedups) -> tuple[str | None, Ratio | None]:
    """The ratio through the first baseline that both alternated with, if its source is the same in both."""
    for name in sorted(one.keys() & other.keys()):
        (sha256, ratio), (other_sha256, other_ratio) = one[name], other[name]
        if sha256 == other_sha256:
            return name, _over(ratio, other_ratio)
    return None, None


def _over(one: Ratio, other: Ratio) -> Ratio:
    """The second's time over the first's, from their speedups over the same baseline."""
    return Ratio(
        median=one.median / other.median,
        low=one.low / other.high,
        high=one.high / other.low,
        confidence=min(one.confidence, other.confidence),
    )


def _difference(site: Site, problem: str, *sides: Verdict) -> tuple[str, ...] | None:
    one, other = (side.submission for side in sides)
    sources = site.sources(problem, one), site.sources(problem, other)
    if sources[0] is None or sources[1] is None:
        return None
    texts = _joined(sources[0]), _joined(sources[1])
    if max(map(len, texts)) > _LONGEST:
        return None
    return markup.difference(*texts, (f"{one.author}/{one.name}", f"{other.author}/{other.name}"))


def _joined(sources: Mapping[str, str]) -> str:
    """One text: the source, then its other files, each below a line with its name."""
    own, *others = sources.values()
    _, *names = sources
    return "\n".join([own, *(f"==== {name} ====\n{text}" for name, text in zip(names, others, strict=True))])


def _profiles(site: Site, book: Book, rows: tuple[Row, Row]) -> Iterator[tuple[str, Row, str, Shown]]:
    """The flame graphs and small tables of both runs' profiles, those with the same name one after the other."""
    sides = []
    for mark, row in zip("AB", rows, strict=True):
        profiled = site.profiles.get(row.run)
        found = site.profile(book, row.run) if profiled is not None and profiled.digest else None
        if found is not None:
            sides.append((mark, row, found, profiles.tables(found, _ROWS_BYTES)))
    for name in _names([list(found.stacks) for _, _, found, _ in sides])[:_FLAMES]:
        for mark, row, found, _ in sides:
            if name in found.stacks:
                yield mark, row, name, profiles.flame(found, name, max_bytes=_FLAME_BYTES, style=False)
    for name in _names([[table.name for table in tables] for *_, tables in sides]):
        for mark, row, _, tables in sides:
            yield from ((mark, row, name, table) for table in tables if table.name == name)


def _names(of_sides: Iterable[Iterable[str]]) -> list[str]:
    return list(dict.fromkeys(chain.from_iterable(of_sides)))


KIND = Kind(pages, (ComparisonDocument,))
