"""The list of authors and teams, and each one's page: standings, outcomes, accepted and failed runs. Trusted; pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Any, NamedTuple

from harness.verdict import Outcome
from leaderboard.publishing.site import boards, paths
from leaderboard.publishing.site.digest import Board, Failure, LedgerDigest, Tally, merged
from leaderboard.publishing.site.document import (
    AcceptedRun,
    Activity,
    Attempts,
    AuthorDocument,
    AuthorsDocument,
    Place,
)
from leaderboard.publishing.site.folder import Page, as_text
from leaderboard.publishing.site.inputs import Link, Site
from leaderboard.publishing.site.pages.kind import Kind
from leaderboard.record.teams import Team
from leaderboard.standings.ranking import Row

_QUOTING = {Outcome.COMPILE_ERROR, Outcome.RUNTIME_ERROR, Outcome.UNSUPPORTED}
_LISTED = 1000  # maximum number of authors in the list
_ACCEPTED = 60  # maximum number of accepted runs on a page
_FAILED = 40  # maximum number of failure reports on a page, which keeps it below 300 KB


class Ranked(NamedTuple):
    """A row with its board, its problem's ledger, and whether the board is current."""

    book: LedgerDigest
    board: Board
    row: Row
    current: bool


class _Subject(NamedTuple):
    """Whom a page is about: an author, or a team, with all that its members submitted."""

    name: str
    team: Team | None
    """The team that it is, or that the author is in."""
    rows: list[Ranked]
    accepted: list[tuple[str, boards.Stand]]
    """Those that have a page, with their problems; of each problem, newest first."""
    tallies: list[tuple[str, Tally]]


def pages(site: Site) -> Iterator[Page]:
    """The list of authors and teams, and a page for each of them."""
    subjects = _subjects(site)
    yield _everybody(site, subjects.values())
    for _, subject in sorted(subjects.items()):
        yield _page(site, subject, subjects.keys())


def _subjects(site: Site) -> dict[str, _Subject]:
    """Everybody who submitted, and their teams, by name; where a team has the name of a member, the team."""
    subjects: dict[str, _Subject] = {}

    def about(author: str) -> Iterator[_Subject]:
        for name in {author, site.material.teams.name_of(author)}:
            yield subjects.setdefault(name, _Subject(name, site.material.teams.of(name), [], [], []))

    for book in site.books:
        current = boards.current(book, site.sha256(book.problem))
        for board in book.boards:
            for row in board.table.rows:
                for subject in about(row.author):
                    subject.rows.append(Ranked(book, board, row, board.table.key in current))
        for stand in site.stands[book.problem]:
            for subject in about(stand.run.author):
                subject.accepted.append((book.problem, stand))
        theirs: dict[str, list[Tally]] = {}
        for author, tally in book.authors.items():
            for subject in about(author):
                theirs.setdefault(subject.name, []).append(tally)
        for name, tallies in theirs.items():
            subjects[name].tallies.append((book.problem, merged(tallies)))
    return subjects


def _everybody(site: Site, subjects: Iterable[_Subject]) -> Page:
    document = AuthorsDocument(
        authors=tuple(
            Activity(
                author=each.name,
                team=each.team,
                problems=len(each.tallies),
                boards=len(each.rows),
                verdicts=sum(sum(tally.outcomes.values()) for _, tally in each.tallies),
                accepted=sum(tally.outcomes.get(Outcome.ACCEPTED.value, 0) for _, tally in each.tallies),
                latest=max(tally.latest for _, tally in each.tallies),
            )
            for each in sorted(subjects, key=lambda each: (each.name.lower(), each.name))
        )
    )
    return site.page(
        paths.AUTHORS, "authors.html", (document.model_dump_json(),), lambda: (document, {"shown": _LISTED})
    )


def _page(site: Site, subject: _Subject, known: Collection[str]) -> Page:
    """One page; `known` are those who have one."""
    author, team, rows, accepted, tallies = subject
    there = [each for each in team.members if each in known] if team else []

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
        measured = [each for each in places if each.current and not each.key.interpreted]
        failures = sorted(
            ((each.problem, failure) for each in attempts for failure in each.failures),
            key=lambda pair: (pair[1].created_at, pair[1].run),
            reverse=True,
        )
        runs = sorted((_accepted(*each) for each in accepted), key=lambda run: (run.created_at, run.run), reverse=True)
        return AuthorDocument(author=author, team=team, places=places, accepted=tuple(runs), attempts=attempts), {
            "there": there,
            "firsts": sum(each.row.rank == 1 for each in measured),
            "boards": len(measured),
            "graded": sum(sum(each.outcomes.values()) for each in attempts),
            "accepted": sum(each.outcomes.get(Outcome.ACCEPTED.value, 0) for each in attempts),
            "latest": max(each.latest for each in attempts),
            "speedup": boards.speedup,
            "faster": any(boards.speedup(each.row) is not None for each in places),
            "shares": any(each.row.share is not None for each in places),
            "runs_shown": runs[:_ACCEPTED],
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
    made = [
        (problem, each.run.run, each.row.run, each.row.rank, each.row.state, each.of, each.current)
        for problem, each in accepted
    ]
    told = as_text([team, there, standing, made, tried])
    return site.page(paths.author(author), "author.html", (author, told), make)


def _accepted(problem: str, stand: boards.Stand) -> AcceptedRun:
    run, row = stand.run, stand.row
    return AcceptedRun(
        problem=problem,
        key=run.key,
        run=run.run,
        author=run.author,
        submission=run.name,
        score=run.score,
        created_at=run.created_at,
        counts=stand.counts,
        row=row.run,
        rank=row.rank,
        state=row.state,
        of=stand.of,
        current=stand.current,
    )


def _redacted(failure: Failure, hidden: str) -> Failure:
    """A failure without compiler and exception messages, which can quote the source, if that may not be shown."""
    if not hidden or failure.outcome not in _QUOTING:
        return failure
    reasons = tuple(reason.model_copy(update={"message": hidden}) for reason in failure.reasons)
    return failure.model_copy(update={"message": hidden, "reasons": reasons})


KIND = Kind(pages, (AuthorDocument, AuthorsDocument), (Link(paths.AUTHORS, "Authors"),))
