"""Reads what the project has recorded: ledgers, standings, runs, sources. Trusted."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

from harness.errors import HarnessError, ProblemError, UsageError
from harness.files import outside
from harness.files.identity import length_prefixed_sha256
from harness.problem import Problem
from harness.submission import Submission
from harness.wire.protocol import PROTOCOL
from kernelmark.project.competition import State, state
from kernelmark.project.problems import (
    find_directory,
    identity,
    private_folder,
    problem_directories,
    refuse_without_project,
)
from kernelmark.project.settings import Settings
from kernelmark.text.problem import open_now
from kernelmark.text.problems import BoardPlace, ListedProblem, ProblemList
from kernelmark.text.standings import RecordedRun, of_runs
from leaderboard.record.archive import stored
from leaderboard.record.current import Current
from leaderboard.record.entry import VERDICT, Entry
from leaderboard.record.index import Index
from leaderboard.record.ledger import JsonlLedger
from leaderboard.record.similar import GradedFile
from leaderboard.standings.notice import Notice
from leaderboard.standings.ranking import Table, rank

FoundRun = tuple[JsonlLedger, Entry]
"""A recorded verdict, and its ledger."""


def listed(
    settings: Settings, problems: Iterable[Problem], places: Mapping[str, Sequence[BoardPlace]], author: str, left: str
) -> ProblemList:
    """The list of problems, with the places of an author, and what the limits leave to the author."""
    now, items = datetime.now(UTC), []
    for problem in problems:
        found = state(settings, problem.slug, now)
        items.append(
            ListedProblem(
                slug=problem.slug,
                title=problem.title,
                tags=problem.tags,
                directory=str(problem.directory),
                deadline=found.schedule.deadline,
                closes=found.schedule.closes,
                frozen=found.frozen,
                open=open_now(found.schedule, now),
                places=tuple(places.get(problem.slug, ())),
            )
        )
    found = state(settings, None, now)
    return ProblemList(
        items=tuple(items),
        phase=found.phase,
        phase_open=found.schedule.schedule if found.phase and found.closed is None else "",
        announcements=notices_of(found),
        author=author,
        left=left,
    )


def notices_of(found: State) -> tuple[Notice, ...]:
    """The announcements of a state, as they are shown."""
    return tuple(Notice(**dict(announcement)) for announcement in found.announcements)


def ledgers(settings: Settings, problem: str | None = None) -> list[JsonlLedger]:
    """The ledger of one problem (its slug or directory), or all ledgers, in the order of slugs.

    Raises:
        UsageError: the problem does not exist and has no ledger, or there is no project here.
    """
    slugs = _recorded(settings)
    if problem is not None:
        wanted = slug_of(settings, problem)
        slugs = [slug for slug in slugs if slug == wanted]
    elif not slugs:
        refuse_without_project(settings)
    return [ledger(settings, slug) for slug in slugs]


def slug_of(settings: Settings, problem: str) -> str:
    """The slug of a problem, which may be named by any path to its directory, such as `.`.

    Raises:
        UsageError: the problem does not exist and has no ledger.
    """
    name = Path(problem).name
    return name if name in _recorded(settings) else find_directory(settings, problem).name


def _recorded(settings: Settings) -> list[str]:
    return sorted(path.stem for path in settings.locate("results").glob("*.jsonl"))


def ledger(settings: Settings, slug: str) -> JsonlLedger:
    """The ledger of a problem, which need not exist yet. Readers do not see what a frozen board hides, unless the
    settings are those of an organizer.
    """
    frozen = state(settings, slug, datetime.now(UTC)).frozen
    return JsonlLedger(settings.locate("results") / f"{slug}.jsonl", index(settings), frozen)


def whole(settings: Settings) -> Settings:
    """Settings with which a ledger includes what a frozen board hides: for code that does not show results."""
    return settings.model_copy(update={"organizer": True})


def published(settings: Settings) -> Settings:
    """Settings with which a ledger has only what everyone may see: for code that publishes results."""
    return settings.model_copy(update={"organizer": False})


def index(settings: Settings) -> Index:
    """The project's index of its ledgers."""
    return _index(settings.root)


@cache
def _index(root: Path) -> Index:
    """The file name depends on the folder, the machine and the user, so that no pull request can add an index."""
    try:
        machine = outside.text(Path("/etc/machine-id"), errors="replace")
    except OSError:
        machine = platform.node()
    own = (machine, root.stat().st_dev, root.stat().st_ino, getattr(os, "geteuid", int)())
    return Index(root / ".kernelmark" / f"index-{length_prefixed_sha256(repr(own).encode())[:12]}.sqlite")


def tables(settings: Settings, problem: str | None = None) -> list[Table]:
    """The standings of one problem (its slug or directory), or of all that have a ledger.

    Raises:
        UsageError: the problem does not exist and has no ledger.
        LedgerError: a ledger is broken.
    """
    now = current(settings)
    ranked = [rank(ledger, now, settings.teams) for ledger in ledgers(settings, problem)]
    return [table for tables in ranked for table in tables]


def places(settings: Settings) -> dict[str, list[BoardPlace]]:
    """The places of these settings' author, or the team, on the current boards, by the slug of the problem.

    Raises:
        LedgerError: a ledger is broken.
    """
    author, found = settings.author_or_default(), dict[str, list[BoardPlace]]()
    for table in tables(settings):
        for row in table.ranked:
            if row.belongs_to(author) and row.stale is None:
                place = BoardPlace(row.rank or 0, len(table.ranked), table.key.title, row.run)
                found.setdefault(table.key.problem, []).append(place)
    return found


def newest(
    settings: Settings, problem: str | None = None, *, author: str | None = None, last: int
) -> tuple[list[RecordedRun], int]:
    """The newest recorded gradings, newest first, and how many there are; of one problem or author, or of all.

    Raises:
        UsageError, LedgerError: as for `tables`.
    """
    now, standings, found = current(settings), dict[str, str](), list[tuple[datetime, int, JsonlLedger]]()
    for recorded in ledgers(settings, problem):
        with recorded.lines() as lines:
            mine = [verdict for verdict in lines.facts().verdicts if author in (None, verdict.author)]
            standings |= of_runs(rank(lines, now, settings.teams))
        found += [(verdict.created_at, verdict.seq, recorded) for verdict in mine]
    found.sort(key=lambda at: at[0], reverse=True)
    verdicts = [entry.verdict for _, seq, recorded in found[:last] for entry in recorded.at({seq})]
    return [RecordedRun(verdict, standings.get(verdict.run, "")) for verdict in verdicts], len(found)


def current(settings: Settings) -> Current:
    """The current problems and protocol, with which stale rows are found."""
    known, now = _identified(settings), datetime.now(UTC)
    closed = {slug: at for slug in known if (at := state(settings, slug, now).closed) is not None}
    return current_with(settings, known, closed)


def current_with(settings: Settings, problems: dict[str, str], closed: dict[str, datetime]) -> Current:
    """As `current`, where the hashes of the problems, and when some were closed, are known already."""
    private = private_folder(settings) is not None
    return Current(problems=problems, protocol=PROTOCOL, with_private=private, closed=closed)


def _identified(settings: Settings) -> dict[str, str]:
    hashes, now = {}, datetime.now(UTC)
    for directory in problem_directories(settings):
        with suppress(ProblemError):  # a problem that cannot be read has no current rows
            hashes[directory.name] = identity(settings, directory, now)
    return hashes


def find_run(settings: Settings, prefix: str) -> FoundRun:
    """The one recorded verdict, on any problem, whose run id begins with these hexadecimal digits, and its ledger.

    Raises:
        UsageError: these are not hexadecimal digits, or no run or several runs begin with them.
        LedgerError: a ledger is broken.
    """
    if not re.fullmatch("[0-9a-f]+", prefix):  # an empty prefix, as from an unset variable, would match every run
        raise UsageError(
            f"run {prefix!r}", "is not a run id", "give its first hexadecimal digits, as `kernelmark board` shows"
        )
    matching = [(entry.verdict.run, ledger, entry) for ledger in ledgers(settings) for entry in ledger.runs(prefix)]
    if not matching and not settings.organizer and any(ledger.runs(prefix) for ledger in ledgers(whole(settings))):
        what = "was graded after its board was frozen"
        raise UsageError(f"run {prefix}", what, "it is shown once the problem closes (`kernelmark problems list`)")
    if not matching:
        raise UsageError(f"run {prefix}", "was never recorded here", "`kernelmark runs` lists all runs")
    if len(matching) > 1:
        raise UsageError(f"run {prefix}", f"could be {', '.join(run for run, *_ in matching[:4])}", "give more digits")
    return matching[0][1:]


def run_ids(settings: Settings) -> list[str]:
    """The ids of all recorded verdicts.

    Raises:
        LedgerError: a ledger is broken.
    """
    return [verdict.run for ledger in ledgers(settings) for verdict in ledger.facts().verdicts]


def source_of(settings: Settings, prefix: str) -> tuple[Submission, str]:
    """The archived source of the run whose id begins with `prefix`, and the slug of its problem.

    Raises:
        UsageError, LedgerError: as for `find_run`.
        HarnessError: the source is missing, or is not what was graded.
    """
    _, entry = find_run(settings, prefix)
    verdict = entry.verdict
    return stored(settings.locate("archive"), verdict.problem.slug, verdict.submission), verdict.problem.slug


def sources(settings: Settings, problem: str) -> tuple[dict[GradedFile, Submission], list[str]]:
    """Every source that was graded on a problem, once, by its first run; and an error for each that cannot be read.

    Raises:
        UsageError: the problem is unknown.
        LedgerError: its ledger is broken.
    """
    submissions, missing, seen = {}, [], set()
    for ledger in ledgers(settings, problem):
        for entry in ledger.read():
            if entry.kind != VERDICT:
                continue
            verdict = entry.verdict
            submission = verdict.submission
            if (submission.author, submission.sha256) in seen:
                continue
            seen.add((submission.author, submission.sha256))
            try:
                source = stored(settings.locate("archive"), verdict.problem.slug, submission)
            except HarnessError as error:
                missing.append(str(error))
            else:
                submissions[GradedFile(author=submission.author, run=verdict.run, name=submission.name)] = source
    return submissions, missing
