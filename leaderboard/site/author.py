"""The page of an author: where they stand, how their runs ended, and the newest failed ones. Trusted; pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from leaderboard.site import boards, place
from leaderboard.site.document import Attempts, AuthorDocument, Place
from leaderboard.site.folder import Page
from leaderboard.site.material import Site

_FAILED = 40  # whose reports a page shows: it stays below 300 KB


def pages(site: Site) -> Iterator[Page]:
    """A page for everybody who ever submitted."""
    places: dict[str, list[Place]] = {}
    attempts: dict[str, list[Attempts]] = {}
    for book in site.books:
        for author, each in boards.places(book):
            places.setdefault(author, []).append(each)
        for author, tally in book.authors.items():
            attempts.setdefault(author, []).append(
                Attempts(
                    problem=book.problem, outcomes=tally.outcomes, latest=tally.latest, failures=tally.failures
                )
            )  # fmt: skip
    for author, attempted in sorted(attempts.items()):
        stood = tuple(places.get(author, ()))
        document = AuthorDocument(author=author, places=stood, attempts=tuple(attempted))
        yield _page(site, document)


def _page(site: Site, document: AuthorDocument) -> Page:
    failures = sorted(
        ((each.problem, failure) for each in document.attempts for failure in each.failures),
        key=lambda pair: (pair[1].created_at, pair[1].run),
        reverse=True,
    )
    values: dict[str, Any] = {
        "outcomes": sorted({name for each in document.attempts for name in each.outcomes}),
        "failures": failures[:_FAILED],
        "left_out": max(0, len(failures) - _FAILED),
    }
    titles = str([site.titles.get(each.problem) for each in document.attempts])
    path = place.author(document.author)
    return site.page(path, "author.html", (document.model_dump_json(), titles), lambda: (document, values))
