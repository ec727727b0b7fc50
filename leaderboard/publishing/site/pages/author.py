"""The list of authors and teams, and each one's page: standings, outcomes, accepted and failed runs. Trusted; pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from functools import cache
from typing import Any, NamedTuple

from harness.verdict import CaseResult, Mismatch, Outcome, Verdict
from leaderboard.publishing.site import paths
from leaderboard.publishing.site.boards import Stand, speedup
from leaderboard.publishing.site.book import Book, Placed, Tried
from leaderboard.publishing.site.document import (
    AuthorDocument,
    AuthorsDocument,
    AuthorTotals,
    Failure,
    ProblemAttempts,
    Reason,
    Standing,
)
from leaderboard.publishing.site.folder import Page, as_text
from leaderboard.publishing.site.inputs import Kind, Link, Site
from leaderboard.record.fields import VerdictFields
from leaderboard.record.teams import Team

_QUOTING = {Outcome.COMPILE_ERROR, Outcome.RUNTIME_ERROR, Outcome.UNSUPPORTED}
_LISTED = 1000  # maximum number of authors in the list
_ACCEPTED = 60  # maximum number of accepted runs on a page
_FAILED = 40  # maximum number of failure reports on a page, which keeps it below 300 KB
_ELEMENTS = 8  # maximum number of reasons of a failure, and of elements and hints of a reason


class _Subject(NamedTuple):
    """The author whom a page is about, or the team, with all that its members submitted."""

    name: str
    team: Team | None
    """The team that it is, or that the author is in."""
    places: list[Placed]
    stands: list[Stand]
    """Of the accepted runs that have a page and are not on a board."""
    tried: dict[str, tuple[Book, Tried]]
    """By problem."""


def pages(site: Site) -> Iterator[Page]:
    """The list of authors and teams, and a page for each of them."""
    subjects = _subjects(site)
    yield _everybody(site, subjects.values())
    for _, subject in sorted(subjects.items()):
        yield _page(site, subject, subjects.keys())


def _subjects(site: Site) -> dict[str, _Subject]:
    """Everybody who submitted, and their teams, by name; where a team has the name of a member, the team."""
    subjects: dict[str, _Subject] = {}
    teams = site.material.teams

    @cache
    def about(author: str) -> list[_Subject]:
        names = {author, teams.name_of(author)}
        return [subjects.setdefault(name, _Subject(name, teams.of(name), [], [], {})) for name in names]

    for book in site.books:
        for placed in book.placed.values():
            for subject in about(placed.row.author):
                subject.places.append(placed)
        for stand in site.stands[book.problem]:
            for subject in about(stand.line.author):
                subject.stands.append(stand)
        for author, tried in book.authors.items():
            for subject in about(author):
                _, known = subject.tried.get(book.problem, (book, None))
                subject.tried[book.problem] = book, tried if known is None else known.with_(tried)
    return subjects


def _everybody(site: Site, subjects: Iterable[_Subject]) -> Page:
    ordered = sorted(subjects, key=lambda subject: (subject.name.lower(), subject.name))
    document = AuthorsDocument(authors=tuple(map(_totals, ordered)))
    return site.page(
        paths.AUTHORS, "authors.html", (document.model_dump_json(),), lambda: (document, {"shown": _LISTED})
    )


def _totals(subject: _Subject) -> AuthorTotals:
    tried = [tried for _, tried in subject.tried.values()]
    return AuthorTotals(
        author=subject.name,
        team=subject.team,
        problems=len(tried),
        boards=len(subject.places),
        verdicts=sum(results.outcomes.total() for results in tried),
        accepted=sum(results.outcomes[Outcome.ACCEPTED] for results in tried),
        latest=max(results.latest for results in tried),
    )


def _page(site: Site, subject: _Subject, known: Collection[str]) -> Page:
    """The page of one subject; `known` are those who have one."""
    author, team = subject.name, subject.team
    there = [member for member in team.members if member in known] if team else []

    def make() -> tuple[AuthorDocument, dict[str, Any]]:
        on_board = [Stand(placed.line, "itself", placed) for placed in subject.places]
        newest_first = sorted([*on_board, *subject.stands], key=lambda stand: stand.line.age, reverse=True)
        runs = [stand.accepted_run() for stand in newest_first]
        places = [_standing(placed) for placed in subject.places]
        attempts = [_attempts(book, tried, site.hidden(book.problem)) for book, tried in subject.tried.values()]
        failures = sorted(
            ((tried.problem, failure) for tried in attempts for failure in tried.failures),
            key=lambda pair: (pair[1].created_at, pair[1].run),
            reverse=True,
        )
        measured = [place for place in places if place.current and not place.key.interpreted]
        total = _totals(subject)
        document = AuthorDocument(
            author=author, team=team, places=tuple(places), accepted=tuple(runs), attempts=tuple(attempts)
        )
        return document, {
            "there": there,
            "firsts": sum(place.row.rank == 1 for place in measured),
            "boards": len(measured),
            "graded": total.verdicts,
            "accepted": total.accepted,
            "latest": total.latest,
            "faster": any(speedup(place.row) is not None for place in places),
            "shares": any(place.row.share is not None for place in places),
            "runs_shown": runs[:_ACCEPTED],
            "outcomes": sorted({name for tried in attempts for name in tried.outcomes}),
            "failures": failures[:_FAILED],
            "left_out": max(0, len(failures) - _FAILED),
        }

    marks = [f"{problem} {tried.mark} {site.hidden(problem)}" for problem, (_, tried) in subject.tried.items()]
    marks += [site.titles.get(problem, "") for problem in subject.tried]
    marks += [f"{place.mark} {place.row.rank} {place.of} {place.board.current}" for place in subject.places]
    marks += [stand.mark for stand in subject.stands]
    if stale := [place.row.stale for place in subject.places if place.row.stale is not None]:
        marks.append(as_text([(mark, mark.again in site.runs) for mark in stale]))
    if team:
        marks.append(as_text([team, there]))
    return site.page(paths.author(author), "author.html", marks, make)


def _standing(placed: Placed) -> Standing:
    board = placed.board
    return Standing(problem=board.key.problem, key=board.key, of=placed.of, row=placed.row, current=board.current)


def _attempts(book: Book, tried: Tried, hidden: str) -> ProblemAttempts:
    return ProblemAttempts(
        problem=book.problem,
        outcomes=dict(sorted(tried.outcomes.items())),
        latest=tried.latest,
        failures=tuple(_failure(line, book.verdict(line), hidden) for line in book.failed(tried)),
    )


def _failure(line: VerdictFields, verdict: Verdict, hidden: str) -> Failure:
    """The report of a failed run, without log and traceback: those can quote the source, which may not be public.

    If it is hidden, so are the messages of compilers and of exceptions, which can quote it, too.
    """
    reasons = [reason for case in verdict.tests if case.outcome is not Outcome.ACCEPTED for reason in _reasons(case)]
    quoting = bool(hidden) and verdict.outcome in _QUOTING
    return Failure(
        hash=line.hash,
        run=verdict.run,
        name=verdict.submission.name,
        language=verdict.submission.language,
        outcome=verdict.outcome,
        message=hidden if quoting else verdict.message,
        device_name=verdict.environment.device_name,
        created_at=verdict.created_at,
        reasons=tuple(
            reason.model_copy(update={"message": hidden}) if quoting else reason for reason in reasons[:_ELEMENTS]
        ),
    )


def _reasons(case: CaseResult) -> Iterator[Reason]:
    wrong = [_shortened(output.mismatch) for output in case.outputs if output.mismatch is not None]
    for mismatch in (*wrong, None)[: max(1, len(wrong))]:
        yield Reason(case=case.name, message=case.message, mismatch=mismatch)


def _shortened(mismatch: Mismatch) -> Mismatch:
    return mismatch.model_copy(update={"first": mismatch.first[:_ELEMENTS], "hints": mismatch.hints[:_ELEMENTS]})


KIND = Kind(pages, (AuthorDocument, AuthorsDocument), (Link(paths.AUTHORS, "Authors"),))
