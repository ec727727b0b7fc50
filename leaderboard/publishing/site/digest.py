"""A digest of one ledger: its boards, the records over time, the runs shown, and each author's tally.

`reading` makes and caches digests; pages are made from digests alone, except that the page of a run also needs its
verdict. Only `leaderboard.standings.ranking` assigns ranks. Trusted; pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta

from pydantic import Field

from harness.stats import geometric_mean
from harness.submission import BesideName
from harness.verdict import (
    CaseResult,
    Interval,
    LaunchedKernel,
    Mismatch,
    Outcome,
    Ratio,
    Record,
    Roofline,
    Sha256,
    SubmissionId,
    Verdict,
)
from leaderboard.record.fields import VerdictFields
from leaderboard.record.teams import NO_TEAMS, Team, Teams, shown
from leaderboard.standings.ranking import Ranking, Table, TableKey
from leaderboard.text.visible import shortened

_FAILURES = 5  # newest failures shown per author and problem
_ACCEPTED = 5  # newest accepted runs of an author that have a page
_ACCEPTED_OF_ALL = 50  # of all authors of a problem; each costs time in every build
_ELEMENTS = 8
KERNELS = 4  # kept of each case
_LETTERS, _TAIL = 120, 40  # of a kernel's name, and of those at its end
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class BaselineTime(Record):
    """A baseline that alternated with a run in one case."""

    sha256: Sha256
    time_ns: int
    speedup: Ratio


class TimedCase(Record):
    """One timed case of a run."""

    name: str
    score: Interval
    weight: float | None = None
    roofline: Roofline | None = None
    minimum_bytes: int | None = None
    minimum_flops: int | None = None
    baselines: dict[str, BaselineTime] = Field(default={})
    kernels: tuple[LaunchedKernel, ...] = ()
    """If the calls were replayed, those that take longest, with shortened names."""


class Run(Record):
    """An accepted run that has a page: it is on a board, it once held a record, or it is among its author's newest.

    `key` is that of its table, and `ranks` as in `Verdict`.
    """

    hash: Sha256
    run: str
    key: TableKey
    ranks: bool
    author: str
    name: str
    language: str
    sha256: Sha256
    size_bytes: int
    beside: tuple[BesideName, ...] | None = None
    created_at: datetime
    score: Interval
    cases: tuple[TimedCase, ...]

    @property
    def submission(self) -> SubmissionId:
        """The submission's identity, by which the archive finds its source."""
        return SubmissionId(
            sha256=self.sha256,
            name=self.name,
            author=self.author,
            language=self.language,
            size_bytes=self.size_bytes,
            beside=self.beside,
        )

    @property
    def share(self) -> float | None:
        """The geometric mean of the cases' shares of the roofline; None unless every case has one."""
        shares = [case.roofline.share for case in self.cases if case.roofline is not None]
        if not shares or len(shares) < len(self.cases):
            return None
        return geometric_mean(shares, [case.weight or 1.0 for case in self.cases])


class Reason(Record):
    """Where a failed run was wrong: a case, and the mismatch if an output was compared."""

    case: str
    message: str
    mismatch: Mismatch | None = None


class Failure(Record):
    """A run that was not accepted, with a report for its author."""

    hash: Sha256
    run: str
    name: str
    language: str
    outcome: Outcome
    message: str
    device_name: str
    created_at: datetime
    reasons: tuple[Reason, ...]


class Tally(Record):
    """The results of an author or a team on one problem."""

    outcomes: dict[str, int]
    latest: datetime
    failures: tuple[Failure, ...] = ()


def merged(tallies: Sequence[Tally]) -> Tally:
    """The tally of several authors together."""
    failures = sorted((each for tally in tallies for each in tally.failures), key=_age, reverse=True)
    outcomes = sum((Counter(tally.outcomes) for tally in tallies), Counter[str]())
    return Tally(
        outcomes=dict(sorted(outcomes.items())),
        latest=max(tally.latest for tally in tallies),
        failures=tuple(failures[:_FAILURES]),
    )


def _age(failure: Failure) -> tuple[datetime, str]:
    return failure.created_at, failure.run


class Step(Record):
    """A record: a new source whose interval is entirely below those of all earlier sources on its board.

    `run` and `at` are those of its first grading; `score_ns` is pooled over all its gradings.
    """

    run: str
    author: str
    team: Team | None = None
    at: datetime
    score_ns: int

    @property
    def who(self) -> str:
        """As `ranking.Row.who`."""
        return shown(self.author, self.team)


class Board(Record):
    """A table of the ranking with its history; `bests` lists each author's personal bests, oldest first."""

    table: Table
    records: tuple[Step, ...]
    bests: dict[str, tuple[tuple[datetime, int], ...]]


class LedgerDigest(Record):
    """One problem's ledger, digested; `source` identifies its content by its size and its last line's hash."""

    problem: str
    source: str
    boards: tuple[Board, ...]
    runs: dict[str, Run]
    authors: dict[str, Tally]
    activity: dict[str, tuple[int, int]]
    """By date (UTC): the number of verdicts, and how many of them were accepted."""


def make(
    problem: str,
    source: str,
    lines: Iterable[VerdictFields],
    rankings: Iterable[Ranking],
    old: LedgerDigest | None,
    fetch: Callable[[set[int]], Mapping[str, Verdict]],
    teams: Teams = NO_TEAMS,
) -> LedgerDigest:
    """Digest a ledger; `fetch` reads whole verdicts on these lines, by hash, and is called at most once, for what `old`
    lacks.
    """
    lines = list(lines)
    boards = tuple(_board(each, teams) for each in rankings)
    shown = {row.run for board in boards for row in board.table.rows}
    shown |= {step.run for board in boards for step in board.records}
    aside = {run.run for board in boards for run in board.table.set_aside}
    shown |= set(_newest_accepted(each for each in lines if each.run not in aside))
    failed = _newest_failures(lines)
    known_runs = {run.hash: run for run in old.runs.values()} if old else {}
    known_failures = {f.hash: f for tally in old.authors.values() for f in tally.failures} if old else {}
    told = [each for each in lines if each.run in shown]
    missing = {line.seq for line in told if line.hash not in known_runs}
    missing |= {line.seq for newest in failed.values() for line in newest if line.hash not in known_failures}
    fetched = fetch(missing) if missing else {}
    return LedgerDigest(
        problem=problem,
        source=source,
        boards=boards,
        runs={each.run: known_runs.get(each.hash) or _run(each, fetched[each.hash]) for each in told},
        authors=_tallies(
            lines,
            {
                author: tuple(
                    known_failures.get(each.hash) or _failure(each.hash, fetched[each.hash]) for each in newest
                )
                for author, newest in failed.items()
            },
        ),
        activity=_activity(lines),
    )


def moment(seconds: float) -> datetime:
    """A Unix time as a datetime in UTC; times outside the calendar are clamped to its ends."""
    try:
        return _EPOCH + timedelta(seconds=seconds)
    except OverflowError:
        return datetime.max.replace(tzinfo=UTC) if seconds > 0 else datetime.min.replace(tzinfo=UTC)


def _board(ranking: Ranking, teams: Teams) -> Board:
    """A table with its records. A source counts from its first grading there, with its pooled score of today. Identical
    sources count once, for whoever submitted them first; a source that does not rank does not count.
    """
    records: list[Step] = []
    bests: dict[str, list[tuple[datetime, int]]] = {}
    submitted_by: dict[str, str] = {}
    record: Interval | None = None
    for source in sorted(ranking.sources, key=lambda source: (source.first.created_at, source.first.run)):
        submission, score, first = source.verdict.submission, source.score, source.first
        new = submitted_by.setdefault(submission.sha256, submission.author) == submission.author
        if source.state != "ranks":
            continue
        at = moment(first.created_at.timestamp())
        if new and (record is None or score.high_ns < record.low_ns):
            record = score
            team = teams.of(submission.author)
            records.append(Step(run=first.run, author=submission.author, team=team, at=at, score_ns=score.median_ns))
        own = bests.setdefault(submission.author, [])
        if not own or score.median_ns < own[-1][1]:
            own.append((at, score.median_ns))
    bested = {author: tuple(own) for author, own in bests.items()}
    return Board(table=ranking.table, records=tuple(records), bests=bested)


def _newest_accepted(lines: Iterable[VerdictFields]) -> list[str]:
    """The newest accepted runs of each author. If they are too many, all authors lose their oldest ones first."""
    of: dict[str, list[VerdictFields]] = {}
    for each in lines:
        if each.accepted:
            of.setdefault(each.submission.author, []).append(each)
    newest = (enumerate(sorted(each, key=_recency)[:_ACCEPTED]) for each in of.values())
    ordered = sorted((place, *_recency(line), line.run) for author in newest for place, line in author)
    return [run for *_, run in ordered[:_ACCEPTED_OF_ALL]]


def _recency(line: VerdictFields) -> tuple[float, str]:
    return -line.created_at.timestamp(), line.run


def _newest_failures(lines: Iterable[VerdictFields]) -> dict[str, list[VerdictFields]]:
    failed: dict[str, list[VerdictFields]] = {}
    for each in lines:
        if not each.accepted:
            failed.setdefault(each.submission.author, []).append(each)
    return {
        author: sorted(each, key=lambda each: (each.created_at, each.run), reverse=True)[:_FAILURES]
        for author, each in failed.items()
    }


def _tallies(lines: Iterable[VerdictFields], failures: Mapping[str, tuple[Failure, ...]]) -> dict[str, Tally]:
    outcomes: dict[str, Counter[str]] = {}
    latest: dict[str, datetime] = {}
    for line in lines:
        author = line.submission.author
        outcomes.setdefault(author, Counter())[line.outcome.value] += 1
        latest[author] = max(line.created_at, latest.get(author, line.created_at))
    return {
        author: Tally(
            outcomes=dict(sorted(counts.items())),
            latest=moment(latest[author].timestamp()),
            failures=failures.get(author, ()),
        )
        for author, counts in outcomes.items()
    }


def _activity(lines: Iterable[VerdictFields]) -> dict[str, tuple[int, int]]:
    days: dict[int, list[int]] = {}
    for line in lines:
        counted = days.setdefault(int(line.created_at.timestamp() // 86_400), [0, 0])
        counted[0] += 1
        counted[1] += line.accepted
    return {moment(86_400.0 * day).date().isoformat(): (all_, good) for day, (all_, good) in sorted(days.items())}


def _run(line: VerdictFields, verdict: Verdict) -> Run:
    submission = verdict.submission
    assert verdict.score is not None  # only accepted runs get here
    return Run(
        hash=line.hash,
        run=verdict.run,
        key=TableKey.of(line.question),
        ranks=verdict.ranks,
        author=submission.author,
        name=submission.name,
        language=submission.language,
        sha256=submission.sha256,
        size_bytes=submission.size_bytes,
        beside=submission.beside,
        created_at=verdict.created_at,
        score=verdict.score,
        cases=tuple(
            TimedCase(
                name=b.name,
                score=b.score,
                weight=b.weight,
                roofline=b.roofline,
                minimum_bytes=b.minimum_bytes,
                minimum_flops=b.minimum_flops,
                baselines={
                    p.name: BaselineTime(sha256=p.sha256, time_ns=p.time_ns, speedup=p.speedup) for p in b.baselines
                },
                kernels=_longest(b.kernels) if b.mode == "replayed" else (),
            )
            for b in verdict.benchmarks
        ),
    )


def _longest(kernels: Iterable[LaunchedKernel]) -> tuple[LaunchedKernel, ...]:
    first = sorted(kernels, key=lambda kernel: -(kernel.time_ns or 0))[:KERNELS]
    return tuple(each.model_copy(update={"name": shortened(each.name, _LETTERS, _TAIL)}) for each in first)


def _failure(digest: str, verdict: Verdict) -> Failure:
    """The report of a failed run, without log and traceback: those can quote the source, which may not be public."""
    reasons = [reason for case in verdict.tests if case.outcome is not Outcome.ACCEPTED for reason in _reasons(case)]
    return Failure(
        hash=digest,
        run=verdict.run,
        name=verdict.submission.name,
        language=verdict.submission.language,
        outcome=verdict.outcome,
        message=verdict.message,
        device_name=verdict.environment.device_name,
        created_at=verdict.created_at,
        reasons=tuple(reasons[:_ELEMENTS]),
    )


def _reasons(case: CaseResult) -> Iterator[Reason]:
    wrong = [output.mismatch for output in case.outputs if output.mismatch is not None]
    for mismatch in (*wrong, None)[: max(1, len(wrong))]:
        yield Reason(case=case.name, message=case.message, mismatch=_shortened(mismatch))


def _shortened(mismatch: Mismatch | None) -> Mismatch | None:
    if mismatch is None:
        return None
    return mismatch.model_copy(update={"first": mismatch.first[:_ELEMENTS], "hints": mismatch.hints[:_ELEMENTS]})
