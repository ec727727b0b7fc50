"""The list of authors and teams, and each one's page: standings, outcomes, accepted and failed runs. Trusted; pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Any, NamedTuple

from harness.verdict import CaseResult, Mismatch, Outcome, Verdict
from leaderboard.publishing.site import paths
from leaderboard.publishing.site.boards import speedup
from leaderboard.publishing.site.book import Book, Tried
from leaderboard.publishing.site.document import (
    AcceptedRun,
    AuthorDocument,
    AuthorsDocument,
    AuthorTotals,
    Failure,
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
    places: list[Standing]
    accepted: list[AcceptedRun]
    """The accepted runs that have a page; of each problem, the newest first."""
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

    def about(author: str) -> Iterator[_Subject]:
        for name in {author, teams.name_of(author)}:
            if name not in subjects:
                subjects[name] = _Subject(name, teams.of(name), [], [], {})
            yield subjects[name]

    for book in site.books:
        for board in book.boards:
            ranked = len(board.ranked)
            for row in board.rows:
                place = Standing(problem=book.problem, key=board.key, of=ranked, row=row, current=board.current)
                for subject in about(row.author):
                    subject.places.append(place)
        for run in site.stands[book.problem]:
            for subject in about(run.author):
                subject.accepted.append(run)
        for author, tried in book.authors.items():
            for subject in about(author):
                subject.tried.setdefault(book.problem, (book, Tried()))[1].add(tried)
    return subjects


def _everybody(site: Site, subjects: Iterable[_Subject]) -> Page:
    ordered = sorted(subjects, key=lambda subject: (subject.name.lower(), subject.name))
    document = AuthorsDocument(authors=tuple(map(_activity, ordered)))
    return site.page(
        paths.AUTHORS, "authors.html", (document.model_dump_json(),), lambda: (document, {"shown": _LISTED})
    )


def _activity(subject: _Subject) -> AuthorTotals:
    tried = [tried for _, tried in subject.tried.values()]
    return AuthorTotals(
        author=subject.name,
        team=subject.team,
        problems=len(tried),
        boards=len(subject.places),
        verdicts=sum(one.outcomes.total() for one in tried),
        accepted=sum(one.outcomes[Outcome.ACCEPTED] for one in tried),
        latest=max(one.latest for one in tried if one.latest is not None),
    )


def _page(site: Site, subject: _Subject, known: Collection[str]) -> Page:
    """The page of one subject; `known` are those who have one."""
    author, team, places = subject.name, subject.team, subject.places
    there = [member for member in team.members if member in known] if team else []
    runs = sorted(subject.accepted, key=lambda run: (run.created_at, run.run), reverse=True)
    document = AuthorDocument(
        author=author,
        team=team,
        places=tuple(places),
        accepted=tuple(runs),
        attempts=tuple(tried.attempts(problem) for problem, (_, tried) in subject.tried.items()),
    )
    newest = {problem: (book, tried.failed, site.hidden(problem)) for problem, (book, tried) in subject.tried.items()}

    def make() -> tuple[AuthorDocument, dict[str, Any]]:
        attempts = []
        for tried in document.attempts:
            book, lines, hidden = newest[tried.problem]
            reports = tuple(_failure(line, book.verdict(line), hidden) for line in lines)
            attempts.append(tried.model_copy(update={"failures": reports}))
        failures = sorted(
            ((tried.problem, failure) for tried in attempts for failure in tried.failures),
            key=lambda pair: (pair[1].created_at, pair[1].run),
            reverse=True,
        )
        measured = [place for place in places if place.current and not place.key.interpreted]
        total = _activity(subject)
        return document.model_copy(update={"attempts": tuple(attempts)}), {
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

    failed = [([line.hash for line in lines], hidden) for _, lines, hidden in newest.values()]
    titles = [site.titles.get(problem) for problem in newest]
    parts = (document.model_dump_json(), as_text([there, failed, titles]))
    return site.page(paths.author(author), "author.html", parts, make)


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
