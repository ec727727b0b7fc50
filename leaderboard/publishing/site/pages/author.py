"""The list of authors, and each author's page with standings, outcomes and failed runs. Trusted; pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from pydantic_core import to_json

from harness.verdict import Outcome
from leaderboard.publishing.site import boards, paths
from leaderboard.publishing.site.digest import Board, Failure, LedgerDigest, Tally
from leaderboard.publishing.site.document import Activity, Attempts, AuthorDocument, AuthorsDocument, Place
from leaderboard.publishing.site.folder import Page
from leaderboard.publishing.site.inputs import Link, Site
from leaderboard.publishing.site.pages.kind import Kind
from leaderboard.standings.ranking import Row

_QUOTING = {Outcome.COMPILE_ERROR, Outcome.RUNTIME_ERROR, Outcome.UNSUPPORTED}
_LISTED = 1000  # maximum number of authors in the list
_FAILED = 40  # maximum number of failure reports on a page, which keeps it below 300 KB


class Ranked(NamedTuple):
    """A row with its board, its problem's ledger, and whether the board is current."""

    book: LedgerDigest
    board: Board
    row: Row
    current: bool


def pages(site: Site) -> Iterator[Page]:
    """The list of authors, and a page for each of them."""
    rows: dict[str, list[Ranked]] = {}
    tallies: dict[str, list[tuple[str, Tally]]] = {}
    for book in site.books:
        current = boards.current(book, site.sha256(book.problem))
        for board in book.boards:
            for row in board.table.rows:
                ranked = Ranked(book, board, row, board.table.key in current)
                rows.setdefault(row.author, []).append(ranked)
        for author, tally in book.authors.items():
            tallies.setdefault(author, []).append((book.problem, tally))
    yield _everybody(site, rows, tallies)
    for author in sorted(tallies):
        yield _page(site, author, rows.get(author, []), tallies[author])


def _everybody(site: Site, rows: dict[str, list[Ranked]], tallies: dict[str, list[tuple[str, Tally]]]) -> Page:
    document = AuthorsDocument(
        authors=tuple(
            Activity(
                author=author,
                problems=len(tried),
                boards=len(rows.get(author, ())),
                verdicts=sum(sum(tally.outcomes.values()) for _, tally in tried),
                accepted=sum(tally.outcomes.get(Outcome.ACCEPTED.value, 0) for _, tally in tried),
                latest=max(tally.latest for _, tally in tried),
            )
            for author, tried in sorted(tallies.items(), key=lambda item: (item[0].lower(), item[0]))
        )
    )
    return site.page(
        paths.AUTHORS, "authors.html", (document.model_dump_json(),), lambda: (document, {"shown": _LISTED})
    )


def _page(site: Site, author: str, rows: list[Ranked], tallies: list[tuple[str, Tally]]) -> Page:
    def make() -> tuple[AuthorDocument, dict[str, Any]]:
        attempts = tuple(
            Attempts(
                problem=problem,
                outcomes=tally.outcomes,
                latest=tally.latest,
                failures=tuple(_redacted(each, site.hidden(problem)) for each in tally.failures),
            )
            for problem, tally in tallies
        )
        places = tuple(
            Place(
                problem=book.problem,
                key=board.table.key,
                of=len(board.table.ranked),
                row=boards.standing(row, book.runs.get(row.run)),
                current=current,
            )
            for book, board, row, current in rows
        )
        failures = sorted(
            ((each.problem, failure) for each in attempts for failure in each.failures),
            key=lambda pair: (pair[1].created_at, pair[1].run),
            reverse=True,
        )
        return AuthorDocument(author=author, places=places, attempts=attempts), {
            "firsts": sum(each.current and each.row.rank == 1 for each in places),
            "boards": sum(each.current for each in places),
            "graded": sum(sum(each.outcomes.values()) for each in attempts),
            "accepted": sum(each.outcomes.get(Outcome.ACCEPTED.value, 0) for each in attempts),
            "latest": max(each.latest for each in attempts),
            "speedup": boards.speedup,
            "faster": any(boards.speedup(each.row) is not None for each in places),
            "shares": any(each.row.share is not None for each in places),
            "outcomes": sorted({name for each in attempts for name in each.outcomes}),
            "failures": failures[:_FAILED],
            "left_out": max(0, len(failures) - _FAILED),
        }

    # A run never changes, so its id covers everything that the page shows of it except the row's marks.
    standing = [
        (
            book.problem,
            board.table.key,
            current,
            len(board.table.ranked),
            row.rank,
            site.marks(row),
        )
        for book, board, row, current in rows
    ]
    tried = [
        (
            problem,
            site.titles.get(problem),
            site.hidden(problem),
            tally.outcomes,
            tally.latest,
            [each.hash for each in tally.failures],
        )
        for problem, tally in tallies
    ]
    told = to_json((standing, tried)).decode()
    return site.page(paths.author(author), "author.html", (author, told), make)


def _redacted(failure: Failure, hidden: str) -> Failure:
    """A failure without compiler and exception messages, which can quote the source, if that may not be shown."""
    if not hidden or failure.outcome not in _QUOTING:
        return failure
    reasons = tuple(reason.model_copy(update={"message": hidden}) for reason in failure.reasons)
    return failure.model_copy(update={"message": hidden, "reasons": reasons})


KIND = Kind(pages, (AuthorDocument, AuthorsDocument), (Link(paths.AUTHORS, "Authors"),))
