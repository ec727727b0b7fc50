"""The page of a problem: its boards, current ones first, then statement, shapes and reference. Trusted; pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from markupsafe import Markup

from harness.verdict.roofline import choose
from leaderboard.publishing.site import boards, markup, paths
from leaderboard.publishing.site.charts import cases, figure
from leaderboard.publishing.site.charts.figure import Figure
from leaderboard.publishing.site.charts.palette import Key, Palette
from leaderboard.publishing.site.digest import Board, LedgerDigest
from leaderboard.publishing.site.document import BoardDocument, ProblemDocument, Standing
from leaderboard.publishing.site.folder import Page
from leaderboard.publishing.site.inputs import Site
from leaderboard.publishing.site.pages.kind import Kind
from leaderboard.publishing.site.statement import Statement

_ROWS, _OLD_ROWS = 150, 10  # maximum rows of a current and of an old board, which keeps a page below 300 KB
_OLD_BOARDS = 6
_MARKS = 800  # maximum of marks in all plots of a page, for the same reason: each takes some 230 bytes
_TEXT = 40_000


class ShownBoard(NamedTuple):
    """A board as the template shows it."""

    id: str
    document: BoardDocument
    baselines: tuple[str, ...]
    rows: tuple[Standing, ...]
    more: int
    shares: bool
    authors: list[Key]
    """The legend of the plots: colours."""
    cases: list[Key]
    """Shapes; none where nothing is drawn, as on older boards."""
    by_case: list[boards.CaseTimes]
    figures: list[Figure]
    bars: list[Markup]
    slowest_ns: int
    """The whole width of the rows' bars."""


def pages(site: Site) -> Iterator[Page]:
    books = {book.problem: book for book in site.books}
    for statement in site.problems:
        yield _page(site, statement, books.get(statement.slug))


def _page(site: Site, statement: Statement, book: LedgerDigest | None) -> Page:
    path = paths.problem(statement.slug)
    hidden, closed = site.hidden(statement.slug), site.closed(statement)

    def make() -> tuple[ProblemDocument, dict[str, Any]]:
        documents = boards.documents(book, site.sha256(statement.slug)) if book else ()
        ordered = sorted(zip(documents, book.boards if book else (), strict=True), key=lambda pair: not pair[0].current)
        document = ProblemDocument(statement=statement, boards=tuple(each for each, _ in ordered))
        current = sum(each.current for each in documents)
        room = _ROWS if current < 4 else 4 * _ROWS // current
        shown, marks = list[ShownBoard](), _MARKS
        for number, (each, board) in enumerate(ordered[: current + _OLD_BOARDS], start=1):
            if book:
                drawn = _drawn(each, book, marks) if each.current else []
                marks -= len(drawn) * _marks_a_case(each)
                shown.append(_shown(site, statement, number, each, board, book, path, room, drawn))
        return document, {
            "boards": shown,
            "hidden": hidden,
            "closed": closed,
            "how_to_submit": site.material.how_to_submit,
            "statement": markup.markdown(statement.text[:_TEXT]) if statement.text else "",
            "reference": markup.source(statement.reference, "py")[0] if statement.reference else "",
        }

    marks = [site.marks(row) for board in (book.boards if book else ()) for row in board.table.rows]
    roofs = [each.model_dump_json() for each in site.material.calibrations]
    parts = (
        statement.model_dump_json(),
        book.source if book else "",
        hidden,
        closed,
        site.material.how_to_submit,
        *roofs,
        *marks,
    )
    return site.page(path, "problem.html", parts, make)


def _marks_a_case(document: BoardDocument) -> int:
    return figure.RUNS + 2 * boards.CASE_ROWS + len(document.baselines)


def _drawn(document: BoardDocument, book: LedgerDigest, marks: int) -> list[str]:
    """The cases of a board for whose plots there is room, if there is for all of them or if it is the first board."""
    first = next((book.runs[row.run] for row in document.comparable if row.run in book.runs), None)
    names = list(dict.fromkeys(case.name for case in first.cases)) if first is not None else []
    room = marks // _marks_a_case(document)
    return names[:room] if len(names) <= room or marks == _MARKS else []


def _shown(
    site: Site, statement: Statement, number: int, document: BoardDocument, board: Board, book: LedgerDigest,
    path: str, room: int, names: list[str],
) -> ShownBoard:  # fmt: skip
    rows = document.rows[: room if document.current else _OLD_ROWS]
    root = paths.root(path)
    runs = [book.runs[row.run] for row in document.comparable if row.run in book.runs]
    by_case = boards.by_case(document, book.runs, names)
    palette = Palette([run.author for run in runs], names)
    device = document.key.device_name
    figures = []
    if names:
        roofs = choose(site.material.calibrations, device, None)
        figures = [
            figure.records(board, palette, root),
            figure.roofline(runs, device, roofs, _dtypes(statement), palette, root),
            cases.overview(names, by_case, palette, root),
        ]
    return ShownBoard(
        id=f"board-{number}",
        document=document,
        baselines=board.table.baselines[:6],
        rows=rows,
        more=len(document.rows) - len(rows),
        shares=any(row.share is not None for row in document.rows),
        authors=palette.authors(),
        cases=palette.cases(),
        by_case=by_case,
        figures=[each for each in figures if each is not None],
        bars=[cases.case(at, name, by_case, palette, root) for at, name in enumerate(names)],
        slowest_ns=max((row.score.median_ns for row in (*rows, *document.baselines)), default=0),
    )


def _dtypes(statement: Statement) -> dict[str, str]:
    """The dtype of each case, which decides what its arithmetic could reach: that of its first input."""
    return {
        shapes.case: next((tensor for tensor in shapes.tensors if tensor.role != "output"), shapes.tensors[0]).dtype
        for shapes in statement.shapes
        if shapes.tensors
    }


KIND = Kind(pages, (ProblemDocument,))
