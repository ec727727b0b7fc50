"""Reads what the project has recorded: ledgers, standings, runs, sources. Trusted."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

from harness.errors import HarnessError, LedgerError, ProblemError, UsageError
from harness.kinds import DeviceKind
from harness.problem.load import identify
from harness.submission import Submission
from harness.verdict import Verdict
from harness.wire import PROTOCOL
from kernelmark.project.choice import device_name
from kernelmark.project.problems import find_problem, private_folder, problem_directories, refuse_without_project
from kernelmark.project.settings import Settings
from kernelmark.text.recorded import RecordedRun
from leaderboard.record.archive import stored
from leaderboard.record.current import Current
from leaderboard.record.entry import VERDICT, Entry
from leaderboard.record.ledger import JsonlLedger
from leaderboard.record.similar import GradedFile
from leaderboard.standings.ranking import Row, Table, rank

_NEWEST = 5  # gradings that say how long one takes


@dataclass(frozen=True)
class Place:
    """A rank among all ranked rows of a table, which its title names."""

    rank: int
    of: int
    table: str
    run: str

    @property
    def text(self) -> str:
        return f"{self.rank} of {self.of} on {self.table}"


def ledgers(settings: Settings, problem: str | None = None) -> list[JsonlLedger]:
    """The ledger of one problem (given by slug or directory), or all ledgers, in order of slug.

    Raises:
        UsageError: nothing was ever recorded for that problem, and it does not exist; or there is no project here.
    """
    paths = sorted(settings.locate("results").glob("*.jsonl"))
    if problem is not None:
        slug = Path(problem).name
        paths = [path for path in paths if path.stem == slug]
        if not paths:
            find_problem(settings, problem)
    elif not paths:
        refuse_without_project(settings)
    return [JsonlLedger(path) for path in paths]


def tables(settings: Settings, problem: str | None = None) -> list[Table]:
    """The standings of one problem (given by slug or directory), or of all that have a ledger.

    Raises:
        UsageError: nothing was ever recorded for that problem, and it does not exist.
        LedgerError: a ledger is broken.
    """
    now = current(settings)
    ranked = [rank(ledger.read(), now, settings.teams) for ledger in ledgers(settings, problem)]
    return [table for tables in ranked for table in tables]


def places(settings: Settings) -> dict[str, list[Place]]:
    """Where the author of these settings, or their team, stands on the current boards, by the slug of the problem.

    Raises:
        LedgerError: a ledger is broken.
    """
    author, found = settings.author_or_default(), dict[str, list[Place]]()
    for table in tables(settings):
        for row in table.ranked:
            if row.belongs_to(author) and row.stale is None:
                place = Place(row.rank or 0, len(table.ranked), table.key.title, row.run)
                found.setdefault(table.key.problem, []).append(place)
    return found


def newest(
    settings: Settings, problem: str | None = None, *, author: str | None = None, last: int
) -> tuple[list[RecordedRun], int]:
    """The newest recorded gradings, newest first, and how many there are; of one problem or author, if named.

    Raises:
        UsageError, LedgerError: as for `tables`.
    """
    now, verdicts, standings = current(settings), list[Verdict](), dict[str, str]()
    for ledger in ledgers(settings, problem):
        entries = ledger.read()
        verdicts += [each.verdict for each in entries if each.kind == VERDICT]
        for table in rank(entries, now, settings.teams):
            for row in table.rows:
                standings[row.run] = _standing(row, len(table.ranked))
            standings.update({each.run: each.state.replace("_", " ") for each in table.set_aside})
    of_author = [each for each in verdicts if author in (None, each.submission.author)]
    of_author.sort(key=lambda each: each.created_at, reverse=True)
    return [RecordedRun(each, standings.get(each.run, "")) for each in of_author[:last]], len(of_author)


def _standing(row: Row, of: int) -> str:
    placed = row.no_rank or f"rank {row.rank} of {of}"
    return f"{placed}, stale" if row.stale else placed


def usual_s(settings: Settings, slug: str, device: DeviceKind, language: str) -> float | None:
    """How long a grading takes, in seconds: the median of the newest few that were accepted, of this problem, language
    and effort, on this machine's device, or else on the one of its kind that graded last: never of several models.
    None if there are none, or the ledger cannot be read.
    """
    words = [f'"{key}":"{value}"'.encode() for key, value in (("device_kind", device), ("language", language))]
    ledger = JsonlLedger(settings.locate("results") / f"{slug}.jsonl")
    try:
        entries = [each for each in ledger.read() if all(word in each.document for word in words)]  # a cheap filter
        verdicts = (entry.verdict for entry in reversed(entries) if entry.kind == VERDICT)
        alike = [v for v in verdicts if v.score and v.effort == settings.effort and v.submission.language == language]
    except LedgerError:
        return None
    names = [each.environment.device_name for each in alike]
    name = own if (own := device_name(device)) in names else next(iter(names), None)
    took = [each.duration_ns / 1e9 for each, ran_on in zip(alike, names, strict=True) if ran_on == name]
    return median(took[:_NEWEST]) if took else None


def current(settings: Settings, hashes: Mapping[str, str] | None = None) -> Current:
    """The current problems and protocol, by which the board marks stale rows; `hashes` by slug, if they are known."""
    private = private_folder(settings)
    known = _identified(settings, private) if hashes is None else dict(hashes)
    return Current(problems=known, protocol=PROTOCOL, with_private=private is not None)


def _identified(settings: Settings, private: Path | None) -> dict[str, str]:
    hashes, now = {}, datetime.now(UTC)
    for directory in problem_directories(settings):
        with suppress(ProblemError):  # it cannot be graded, so its rows cannot become current again
            hashes[directory.name] = identify(directory, private, now)
    return hashes


def find_run(settings: Settings, prefix: str) -> tuple[JsonlLedger, Entry]:
    """The one recorded verdict, on any problem, whose run id begins with these hexadecimal digits, and its ledger.

    Raises:
        UsageError: these are not hexadecimal digits, or no run or several runs begin with them.
        LedgerError: a ledger is broken.
    """
    if not re.fullmatch("[0-9a-f]+", prefix):  # an empty prefix, as from an unset variable, would match every run
        raise UsageError(
            f"run {prefix!r}", "is not a run id", "give its first hexadecimal digits, as `kernelmark board` shows"
        )
    needle = f'"run":"{prefix}'.encode()  # a cheap filter before parsing
    candidates = (
        (ledger, entry)
        for ledger in ledgers(settings)
        for entry in ledger.read()
        if entry.kind == VERDICT and needle in entry.document
    )
    runs = ((ledger, entry, entry.verdict.run) for ledger, entry in candidates)
    matching = [(run, ledger, entry) for ledger, entry, run in runs if run.startswith(prefix)]
    if not matching:
        raise UsageError(f"run {prefix}", "was never recorded here", "`kernelmark board` lists the best runs")
    if len(matching) > 1:
        raise UsageError(f"run {prefix}", f"could be {', '.join(run for run, *_ in matching[:4])}", "give more digits")
    return matching[0][1:]


def run_ids(settings: Settings) -> list[str]:
    """The ids of all recorded verdicts.

    Raises:
        LedgerError: a ledger is broken.
    """
    entries = (entry for ledger in ledgers(settings) for entry in ledger.read())
    return [entry.verdict.run for entry in entries if entry.kind == VERDICT]


def source_of(settings: Settings, prefix: str) -> tuple[Submission, str]:
    """The archived source of the run whose id begins so, and the slug of its problem.

    Raises:
        UsageError, LedgerError: as for `find_run`.
        HarnessError: the source is missing, or is not what was graded.
    """
    _, entry = find_run(settings, prefix)
    verdict = entry.verdict
    return stored(settings.locate("archive"), verdict.problem.slug, verdict.submission), verdict.problem.slug


def sources(settings: Settings, problem: str) -> tuple[dict[GradedFile, Submission], list[str]]:
    """Every file that was graded on a problem, once, with its first run; and an error for each that cannot be read.

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
