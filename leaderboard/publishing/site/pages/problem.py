"""The page of a problem: its boards, current ones first, then statement, shapes and reference. Trusted; pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from harness.verdict.roofline import choose
from leaderboard.publishing.site import boards, markup, paths
from leaderboard.publishing.site.book import Book
from leaderboard.publishing.site.charts import cases, figure
from leaderboard.publishing.site.charts.figure import Palette
from leaderboard.publishing.site.document import Board, ProblemDocument
from leaderboard.publishing.site.folder import Page, as_text
from leaderboard.publishing.site.inputs import Kind, Site
from leaderboard.publishing.site.statement import Statement

_OLD_ROWS, _OLD_BOARDS = 10, 6  # maximum rows of an old board, and of these boards, which keeps a page below 300 KB
_MARKS = 800  # maximum of marks in all plots of a page, for the same reason: each takes some 230 bytes
_TEXT = 40_000


def pages(site: Site) -> Iterator[Page]:
    books = {book.problem: book for book in site.books}
    for statement in site.problems:
        yield _page(site, statement, books.get(statement.slug))


def _page(site: Site, statement: Statement, book: Book | None) -> Page:
    path = paths.problem(statement.slug)
    hidden, closed = site.hidden(statement.slug), site.closed(statement)
    notices = tuple(notice for notice in site.material.announcements if notice.problem == statement.slug)
    ordered = sorted(book.boards, key=lambda board: not board.current) if book else []

    def make() -> tuple[ProblemDocument, dict[str, Any]]:
        documents = [_with_baselines(board, book) for board in ordered] if book else []
        return ProblemDocument(statement=statement, boards=tuple(documents), announcements=notices), {
            "boards": list(_shown_boards(site, statement, book, documents)) if book else [],
            "hidden": hidden,
            "closed": closed,
            "how_to_submit": site.material.how_to_submit,
            "statement": markup.markdown(statement.text[:_TEXT]) if statement.text else "",
            "reference": markup.source(statement.reference, "py")[0] if statement.reference else "",
        }

    parts = (
        statement.model_dump_json(),
        *(_mark(board, book) for board in ordered if book),
        hidden,
        closed,
        site.material.how_to_submit,
        as_text(notices),
        *(calibration.model_dump_json() for calibration in site.material.calibrations),
    )
    return site.page(path, "problem.html", parts, make)


def _mark(board: Board, book: Book) -> str:
    """It changes with everything that the page shows of a board."""
    rows = [(book.placed[row.run].mark, row.rank, row.stale) for row in board.rows]
    rest = board.model_dump(mode="json", exclude={"rows"})
    return as_text([rest, rows, book.bests[board.key]])


def _with_baselines(board: Board, book: Book) -> Board:
    return board.model_copy(update={"baselines": tuple(boards.baselines(board, book))})


def _shown_boards(site: Site, statement: Statement, book: Book, ordered: Sequence[Board]) -> Iterator[dict[str, Any]]:
    """All current boards and a few old ones; plots are drawn as long as there is room."""
    marks = _MARKS
    for number, board in enumerate(ordered[: len(book.current) + _OLD_BOARDS], start=1):
        drawn = _drawn(board, book, marks) if board.current else []
        marks -= len(drawn) * _marks_a_case(board)
        yield _shown(site, statement, number, board, book, drawn)


def _marks_a_case(board: Board) -> int:
    return figure.RUNS + 2 * boards.CASE_ROWS + len(board.baselines)


def _drawn(board: Board, book: Book, marks: int) -> list[str]:
    """The cases of a board to plot: all of them if there is room; on the first board, as many as there is room for."""
    names = [case.name for verdict in book.of(board.comparable[:1]) for case in verdict.benchmarks]
    names = list(dict.fromkeys(names))
    room = marks // _marks_a_case(board)
    return names[:room] if len(names) <= room or marks == _MARKS else []


def _shown(site: Site, statement: Statement, number: int, board: Board, book: Book, names: list[str]) -> dict[str, Any]:
    """A board as the template shows it, with plots of the cases of these names."""
    rows = board.rows[: boards.shown_rows(book) if board.current else _OLD_ROWS]
    root = paths.root(paths.problem(statement.slug))
    by_case = boards.by_case(board, book, names)
    palette = Palette([row.author for row in board.comparable], names)
    device = board.key.device_name
    figures = []
    if names:
        roofs = choose(site.material.calibrations, device, None)
        runs = book.of(board.comparable[: figure.RUNS])
        figures = [
            figure.records(board, book.bests[board.key], palette, root),
            figure.roofline(runs, device, roofs, _dtypes(statement), palette, root),
            cases.overview(names, by_case, palette, root),
        ]
    return {
        "id": f"board-{number}",
        "document": board,
        "baselines": board.baseline_names[:6],
        "rows": rows,
        "comparable": sum(row.comparable for row in rows),
        "more": len(board.rows) - len(rows),
        "shares": any(row.share is not None for row in board.rows),
        "authors": palette.authors(),  # the legend of the plots: colours, and shapes
        "cases": palette.cases(),
        "by_case": by_case,
        "figures": [picture for picture in figures if picture is not None],
        "bars": [cases.case(at, name, by_case, palette, root) for at, name in enumerate(names)],
        "slowest_ns": max((row.score.median_ns for row in (*rows, *board.baselines)), default=0),
    }


def _dtypes(statement: Statement) -> dict[str, str]:
    """The dtype of each case, which decides what its arithmetic could reach: that of its first input."""
    return {
        shapes.case: next((tensor for tensor in shapes.tensors if tensor.role != "output"), shapes.tensors[0]).dtype
        for shapes in statement.shapes
        if shapes.tensors
    }


KIND = Kind(pages, (ProblemDocument,))
