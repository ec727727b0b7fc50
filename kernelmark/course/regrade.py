"""Finds the sources to grade again: those that are stale or too imprecise to rank, and those that an organizer names.

`kernelmark regrade` calls it. Trusted; the sources come from the archive, whose hashes are checked.
`leaderboard.standings.staleness` decides which rows are stale, and the ranking which are too wide. This module
determines the environment in which this machine would grade now.
"""

from __future__ import annotations

import platform
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from importlib import metadata
from typing import TYPE_CHECKING, Literal

from typing_extensions import TypedDict

from harness.errors import UsageError
from harness.kinds import DeviceKind, isolates
from harness.verdict import Outcome
from kernelmark.course.gradings import AdmittedJob, GradingRequest
from kernelmark.grading.setup import PreparedJob
from kernelmark.project.choice import choose_device, providers
from kernelmark.project.settings import Settings
from kernelmark.record.lateness import Remark
from kernelmark.record.records import current, find_run, ledgers, slug_of
from leaderboard.record.archive import stored
from leaderboard.record.pooling import NO_RANK
from leaderboard.record.selection import selected
from leaderboard.standings.gradings import RecordedGrading, gradings, newest
from leaderboard.standings.ranking import rank
from leaderboard.standings.staleness import newest_environment
from leaderboard.text.units import interval

if TYPE_CHECKING:
    from harness.device import DeviceFacts
    from harness.sandbox import Provider
    from harness.verdict import Environment
    from leaderboard.record.current import Current
    from leaderboard.record.ledger import JsonlLedger
    from leaderboard.standings.ranking import Row, Table


RegradeKind = Literal["due", "failed", "other"]
Where = tuple[DeviceKind, str, bool]
"""The kind and name of a device, and whether the sandbox isolates."""
RegradeCandidate = tuple[RegradeKind, "Row | RecordedGrading", str]
"""A source that might be graded again, by its row or a run, and the reason."""


@dataclass(frozen=True)
class Choice:
    """The sources that an organizer wants graded in addition to those that are due; `author` excludes all others."""

    failed: bool = False
    every: bool = False
    author: str | None = None
    runs: tuple[str, ...] = ()


class DueDocument(TypedDict):
    """A source to be graded again, as `kernelmark regrade --dry-run` prints it."""

    problem: str
    run: str
    author: str
    reason: str


@dataclass(frozen=True)
class Due:
    """A source to be graded again, by its row or one of its runs, with its ledger."""

    ledger: JsonlLedger
    row: Row | RecordedGrading
    reason: str

    def __str__(self) -> str:
        row = self.row
        return f"{self.ledger.path.stem} {row.run} {row.submission} by {row.author}: {self.reason}"

    def document(self) -> DueDocument:
        """The same for programs."""
        run, author = self.row.run, self.row.author
        return {"problem": self.ledger.path.stem, "run": run, "author": author, "reason": self.reason}


def due(settings: Settings, problem: str | None, choice: Choice) -> tuple[list[Due], Counter[str]]:
    """The sources that this machine should grade again, each author's best one first, by rank; and how many it leaves
    out, by the reason and the option that would include them.

    A stale row is due until it has been graded again. A row too wide to rank is graded once more by each call, and the
    gradings are pooled. Late runs come next: they do not rank, but have a mark. With `failed`, sources that failed and
    are out of date follow, and with `every` all others. Rows of other devices, or with another isolation than this
    sandbox, are left out. So are sources with a disqualified run.

    Raises:
        UsageError, HarnessError: the problem or a run is unknown, a run is disqualified, a ledger is broken, or there
            is no such sandbox or device.
    """
    from harness.device import DEVICES
    from harness.sandbox import choose

    if choice.runs:
        return [_named(settings, problem, run) for run in choice.runs], Counter()
    device = choose_device(settings.device, "py")
    provider = choose(settings.sandbox, providers(settings))
    facts, now, due_rows, left = DEVICES[device].facts(), current(settings), list[Due](), Counter[str]()
    mine = (device, facts.device_name, isolates(provider.name))
    for ledger in ledgers(settings, problem):
        if ledger.path.stem not in now.problems:
            continue  # its problem is gone, and cannot be graded at all
        here = _here(ledger, device, provider, facts)
        known = now.model_copy(update={"environments": (here,) if here else ()})
        for where, candidates in _candidates(ledger, known, settings).items():
            for kind, row, reason in candidates:
                if not (left_out := _left_out(kind, row, where, mine, choice)):
                    due_rows.append(Due(ledger, row, reason))
                elif left_out != _NOT_WANTED:
                    left[left_out] += 1
    return due_rows, left


def request(settings: Settings, due: Due) -> GradingRequest:
    """The request to grade a source again: also after the deadline, since it was submitted before. A late run stays
    late.
    """

    def read() -> AdmittedJob:
        (entry,) = due.ledger.at({due.row.seq})
        slug = due.ledger.path.stem
        submission = stored(settings.locate("archive"), slug, entry.verdict.submission)
        problem = settings.locate("problems") / slug
        job = PreparedJob.prepare(settings, problem, submission, author=submission.author)
        return AdmittedJob(job, _remark(due.row), exempt=True)

    return GradingRequest(str(due), read, due.row.author)


def _remark(row: Row | RecordedGrading) -> Remark | None:
    """The remark to record with the new run: that of the old run, if it was late."""
    late = next((event for event in reversed(row.moderation) if row.state == "late" and event.action == "late"), None)
    return Remark("late", late.actor, late.reason) if late is not None else None


def _named(settings: Settings, problem: str | None, prefix: str) -> Due:
    ledger, entry = find_run(settings, prefix)
    if problem is not None and ledger.path.stem != slug_of(settings, problem):
        raise UsageError(f"run {prefix}", f"is of the problem {ledger.path.stem}", "leave PROBLEM out")
    known = current(settings)
    with ledger.lines() as lines:
        run = next(grading for grading in gradings(lines, known) if grading.seq == entry.seq)
    if run.state == "disqualified":
        raise UsageError(f"run {run.run}", "is disqualified, and its new run would rank", "reinstate it first")
    return Due(ledger, run, "asked for")


_NOT_WANTED = "not wanted"


def _left_out(kind: RegradeKind, row: Row | RecordedGrading, where: Where, mine: Where, choice: Choice) -> str:
    """Why a candidate is left out, with the option that includes it; empty if it is graded."""
    if where != mine and kind != "due" and not (choice.every or (kind == "failed" and choice.failed)):
        return _NOT_WANTED
    if where[:2] != mine[:2]:
        return f"graded on another device (run it on {where[1]})"
    if where != mine:
        return f"graded {'with' if where[2] else 'without'} isolation (--sandbox)"
    if choice.author not in (None, row.author):
        return "of others (without --author)" if kind == "due" else _NOT_WANTED
    if kind == "failed" and not (choice.failed or choice.every):
        return "that failed before (--failed)"
    return "up to date, or not the best of an author (--all)" if kind == "other" and not choice.every else ""


def _candidates(ledger: JsonlLedger, known: Current, settings: Settings) -> dict[Where, list[RegradeCandidate]]:
    """The candidates of a ledger by where they were graded, each source once: due rows, then the others."""
    tables: dict[Where, list[Table]] = {}
    closed = known.closed.get(ledger.path.stem)
    with ledger.lines() as lines:
        standings, recorded = rank(lines, known, settings.teams), gradings(lines, known)
        chosen = selected(lines.selections(), closed, settings.teams) if closed is not None else {}
    for table in standings:
        tables.setdefault((table.key.device_kind, table.key.device_name, table.key.isolated), []).append(table)
    graded: dict[Where, list[RecordedGrading]] = {}
    for grading in recorded:
        ran = grading.verdict.environment
        graded.setdefault((ran.device_kind, ran.device_name, ran.isolated), []).append(grading)
    found = {}
    for where, here in graded.items():
        rows = list(_due_rows(tables.get(where, [])))
        taken = {(row.author, row.sha256) for row, _ in rows}
        ranked = {row.author for table in tables.get(where, []) for row in table.rows}
        others = [grading for grading in newest(here) if (grading.author, grading.sha256) not in taken]
        others.sort(key=lambda grading: (not _failed(grading), grading.author in ranked))
        candidates: list[RegradeCandidate] = [("due", *row) for row in rows]
        for grading in others:
            if why := _selected(grading, chosen.get(settings.teams.name_of(grading.author), frozenset())):
                candidates.append(("due", grading, why))
            else:
                candidates.append(("failed" if _failed(grading) else "other", grading, _described(grading)))
        found[where] = candidates
    return found


def _selected(grading: RecordedGrading, chosen: Collection[str]) -> str:
    """Why a selected source without a row on the board is due; empty if it is not."""
    if grading.sha256 not in chosen or grading.stale is None or grading.stale.again is not None:
        return ""
    return f"selected; {grading.stale.reason}"


def _failed(grading: RecordedGrading) -> bool:
    """Whether it failed, and is out of date."""
    accepted = grading.verdict.outcome is Outcome.ACCEPTED
    return not accepted and grading.stale is not None and grading.stale.again is None


def _described(grading: RecordedGrading) -> str:
    outcome = grading.verdict.outcome.value.replace("_", " ")
    return f"{outcome}; {grading.stale.reason}" if grading.stale else f"{outcome}, and up to date"


def _due_rows(tables: list[Table]) -> Iterator[tuple[Row, str]]:
    """The due rows with their reasons, one per source: each author's first row, then the others, then late runs."""
    seen: set[tuple[str, str]] = set()
    authors: set[str] = set()
    later: list[tuple[Row, str]] = []
    for table in tables:
        for row in table.rows:
            reason = _reason(row)
            if reason is None or (row.author, row.sha256) in seen:
                continue
            seen.add((row.author, row.sha256))
            if row.author in authors:
                later.append((row, reason))
            else:
                authors.add(row.author)
                yield row, reason
    yield from later
    for run in (run for table in tables for run in table.set_aside if run.state == "late"):
        if (reason := _reason(run)) is not None and (run.author, run.sha256) not in seen:
            seen.add((run.author, run.sha256))
            yield run, reason


def _reason(row: Row) -> str | None:
    """Why a row is due; None if it is not, or has been graded again in another table."""
    if row.stale is not None:
        return row.stale.reason if row.stale.again is None else None
    return f"{NO_RANK['too_wide']}, {interval(row.score)}" if row.state == "too_wide" else None


def _here(ledger: JsonlLedger, device: DeviceKind, provider: Provider, facts: DeviceFacts) -> Environment | None:
    """The environment of a grading on this device now: the newest recorded one, updated by what is known without a
    grading.

    A container is not inspected: the digest of its image represents its content.
    """
    newest = newest_environment(ledger.facts().verdicts, (device, facts.device_name, provider.name))
    if newest is None:
        return None
    if provider.name == "docker":
        return newest.model_copy(update={**facts.known(), "image_digest": provider.image_digest()})
    versions = {name: metadata.version(name) for name in ("torch", "triton") if getattr(newest, name) is not None}
    return newest.model_copy(update={**facts.known(), **versions, "python": platform.python_version()})
