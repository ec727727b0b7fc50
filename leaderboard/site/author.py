"""The page of an author: where they stand, how their runs ended, and the newest failed ones. Trusted; pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from leaderboard.ranking import Row
from leaderboard.site import boards, place
from leaderboard.site.book import Board, Book, Tally
from leaderboard.site.document import Attempts, AuthorDocument, Place
from leaderboard.site.folder import Page
from leaderboard.site.material import Site

_FAILED = 40  # whose reports a page shows: it stays below 300 KB


def pages(site: Site) -> Iterator[Page]:
    """A page for everybody who ever submitted."""
    rows: dict[str, list[tuple[Book, Board, Row]]] = {}
    tallies: dict[str, list[tuple[str, Tally]]] = {}
    for book in site.books:
        for board in book.boards:
            for row in board.table.rows:
                rows.setdefault(row.author, []).append((book, board, row))
        for author, tally in book.authors.items():
            tallies.setdefault(author, []).append((book.problem, tally))
    for author in sorted(tallies):
        yield _page(site, author, rows.get(author, []), tallies[author])


def _page(site: Site, author: str, rows: list[tuple[Book, Board, Row]], tallies: list[tuple[str, Tally]]) -> Page:
    def make() -> tuple[AuthorDocument, dict[str, Any]]:
        attempts = tuple(
            Attempts(problem=problem, outcomes=tally.outcomes, latest=tally.latest, failures=tally.failures)
            for problem, tally in tallies
        )
        places = tuple(
            Place(
                problem=book.problem,
                key=board.table.key,
                of=len(board.table.rows),
                row=boards.standing(row, book.runs.get(row.run)),
            )
            for book, board, row in rows
        )
        failures = sorted(
            ((each.problem, failure) for each in attempts for failure in each.failures),
            key=lambda pair: (pair[1].created_at, pair[1].run),
            reverse=True,
        )
        return AuthorDocument(author=author, places=places, attempts=attempts), {
            "outcomes": sorted({name for each in attempts for name in each.outcomes}),
            "failures": failures[:_FAILED],
            "left_out": max(0, len(failures) - _FAILED),
        }

    # A run never changes, so that its name stands for all that is told of it.
    stands = [(book.problem, board.table.key, len(board.table.rows), row.rank, row.run) for book, board, row in rows]
    tried = [
        (problem, site.titles.get(problem), tally.outcomes, tally.latest, [each.hash for each in tally.failures])
        for problem, tally in tallies
    ]
    return site.page(place.author(author), "author.html", (author, repr(stands), repr(tried)), make)
