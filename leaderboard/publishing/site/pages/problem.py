"""The page of a problem: its boards, current ones first, then statement, shapes and reference. Trusted; pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from markupsafe import Markup

from leaderboard.publishing.site import boards, markup, paths
from leaderboard.publishing.site.charts import figure
from leaderboard.publishing.site.digest import Board, LedgerDigest
from leaderboard.publishing.site.document import BoardDocument, ProblemDocument, Standing
from leaderboard.publishing.site.folder import Page
from leaderboard.publishing.site.inputs import Site
from leaderboard.publishing.site.pages.kind import Kind
from leaderboard.publishing.site.statement import Statement

_ROWS, _OLD_ROWS = 150, 10  # maximum rows of a current and of an old board, which keeps a page below 300 KB
_OLD_BOARDS = 6
_DRAWN = 4  # maximum number of boards with plots
_TEXT = 40_000


class ShownBoard(NamedTuple):
    """A board as the template shows it."""

    id: str
    document: BoardDocument
    baselines: tuple[str, ...]
    rows: tuple[Standing, ...]
    more: int
    shares: bool
    figures: list[tuple[Markup, str]]
    cases: list[tuple[str, Markup]]
    by_case: list[boards.CaseTimes]
    slowest_ns: int
    """The whole width of the rows' bars."""


def pages(site: Site) -> Iterator[Page]:
    books = {book.problem: book for book in site.books}
    for statement in site.problems:
        yield _page(site, statement, books.get(statement.slug))


def _page(site: Site, statement: Statement, book: LedgerDigest | None) -> Page:
    path = paths.problem(statement.slug)
    hidden = site.hidden(statement.slug)

    def make() -> tuple[ProblemDocument, dict[str, Any]]:
        documents = boards.documents(book, site.sha256(statement.slug)) if book else ()
        ordered = sorted(zip(documents, book.boards if book else (), strict=True), key=lambda pair: not pair[0].current)
        document = ProblemDocument(statement=statement, boards=tuple(each for each, _ in ordered))
        current = sum(each.current for each in documents)
        room = _ROWS if current < 4 else 4 * _ROWS // current
        shown = [
            _shown(number, each, board, book, path, room)
            for number, (each, board) in enumerate(ordered[: current + _OLD_BOARDS], start=1)
            if book
        ]
        return document, {
            "boards": shown,
            "hidden": hidden,
            "statement": markup.markdown(statement.text[:_TEXT]) if statement.text else "",
            "reference": markup.source(statement.reference, "py")[0] if statement.reference else "",
        }

    marks = [site.marks(row) for board in (book.boards if book else ()) for row in board.table.rows]
    parts = (statement.model_dump_json(), book.source if book else "", hidden, *marks)
    return site.page(path, "problem.html", parts, make)


def _shown(number: int, document: BoardDocument, board: Board, book: LedgerDigest, path: str, room: int) -> ShownBoard:
    rows = document.rows[: room if document.current else _OLD_ROWS]
    root = paths.root(path)
    runs = [book.runs[row.run] for row in document.rows if row.run in book.runs]
    figures, cases = list[tuple[Markup, str]](), list[tuple[str, Markup]]()
    if document.current and number <= _DRAWN:
        if (drawn := figure.records(board, root)) is not None:
            figures.append((drawn, "Record over time; faint: the personal bests of the first authors."))
        if (drawn := figure.roofline(runs, root)) is not None:
            figures.append((drawn, "Roofline: the cases of the first rows under what the device allows."))
        cases = figure.cases(runs, root)
    return ShownBoard(
        id=f"board-{number}",
        document=document,
        baselines=board.table.baselines[:6],
        rows=rows,
        more=len(document.rows) - len(rows),
        shares=any(row.share is not None for row in document.rows),
        figures=figures,
        cases=cases,
        by_case=boards.by_case(document, book.runs, [name for name, _ in cases]),
        slowest_ns=max((row.score.median_ns for row in (*rows, *document.baselines)), default=0),
    )


KIND = Kind(pages, (ProblemDocument,))
