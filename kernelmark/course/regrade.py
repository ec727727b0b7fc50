"""Grades again what is out of date or too imprecise to rank, and what an organizer names: `kernelmark regrade`.

The command line calls it. Trusted; the sources come from the archive, whose hashes are checked.
`leaderboard.standings.staleness` decides which rows are stale, and the ranking which are too wide; this module adds
what a grading on this machine would use now.
"""

from __future__ import annotations

import platform
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from typing_extensions import TypedDict

from harness.errors import UsageError
from harness.kinds import DeviceKind, isolates
from harness.verdict import Outcome
from kernelmark.course.several import AdmittedJob, GradingRequest
from kernelmark.grading.setup import PreparedJob
from kernelmark.project.choice import choose_device, providers
from kernelmark.project.settings import Settings
from kernelmark.record.lateness import Remark
from kernelmark.record.records import current, find_run, ledgers
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


Kind = Literal["due", "failed", "other"]
Place = tuple[DeviceKind, str, bool]  # the device, and whether the sandbox isolates


@dataclass(frozen=True)
class Choice:
    """What an organizer asks for in addition to the rows that are due; `author` leaves all others out."""

    failed: bool = False
    every: bool = False
    author: str | None = None
    runs: tuple[str, ...] = ()


class DueDocument(TypedDict):
    """A source to be graded again, as `kernelmark regrade --dry-run` says it."""

    problem: str
    run: str
    author: str
    reason: str


@dataclass(frozen=True)
class Due:
    """A source to be graded again, by its row or a run of it, and its ledger."""

    ledger: JsonlLedger
    row: Row | RecordedGrading
    reason: str

    def __str__(self) -> str:
        row = self.row
        return f"{self.ledger.path.stem} {row.run} {row.submission} by {row.author}: {self.reason}"

    def document(self) -> DueDocument:
        """The same for programs."""
        row = self.row
        return {"problem": self.ledger.path.stem, "run": row.run, "author": row.author, "reason": self.reason}


def due(settings: Settings, problem: str | None, choice: Choice) -> tuple[list[Due], Counter[str]]:
    """What this machine can and should grade again: first each author's best in the newest table, by rank; and how many
    it leaves out, by what these are and what would take them.

    A stale row is due until it was graded again; a row too wide to rank is graded once more by each call, and pooled.
    Runs that were late come next: they do not rank, but have a mark. With `failed`, sources follow that failed and are
    out of date, and with `every` all others. Rows of other devices, or with another isolation than this sandbox, are
    left to other machines or flags. No source of which a run is disqualified is taken.

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
        for where, candidates in _by_place(ledger, known, settings).items():
            for kind, row, reason in candidates:
                if not (taken := _left_out(kind, row, where, mine, choice)):
                    due_rows.append(Due(ledger, row, reason))
                elif taken != _NEVER:
                    left[taken] += 1
    return due_rows, left


def asked(settings: Settings, due: Due) -> GradingRequest:
    """A row as `several` grades it: even after the deadline, since nothing new is submitted. What was late stays so."""

    def read() -> AdmittedJob:
        (entry,) = due.ledger.at({due.row.seq})
        slug = due.ledger.path.stem
        submission = stored(settings.locate("archive"), slug, entry.verdict.submission)
        problem = settings.locate("problems") / slug
        job = PreparedJob.prepare(settings, problem, submission, author=submission.author)
        return AdmittedJob(job, _remark(due.row), exempt=True)

    return GradingRequest(str(due), read, due.row.author)


def _remark(row: Row | RecordedGrading) -> Remark | None:
    """What is recorded with the new run of a late one: the same again."""
    said = next((event for event in reversed(row.moderation) if row.state == "late" and event.action == "late"), None)
    return Remark("late", said.actor, said.reason) if said is not None else None


def _named(settings: Settings, problem: str | None, prefix: str) -> Due:
    ledger, entry = find_run(settings, prefix)
    if problem is not None and ledger.path.stem != Path(problem).name:
        raise UsageError(f"run {prefix}", f"is of the problem {ledger.path.stem}", "leave PROBLEM out")
    run = next(grading for grading in gradings(ledger.facts(), current(settings)) if grading.seq == entry.seq)
    if run.state == "disqualified":
        raise UsageError(f"run {run.run}", "is disqualified, and its new run would rank", "reinstate it first")
    return Due(ledger, run, "asked for")


_NEVER = "never"


def _left_out(kind: Kind, row: Row | RecordedGrading, where: Place, mine: Place, choice: Choice) -> str:
    """What a candidate that is not taken is, and what takes it, in words; empty for one that is."""
    if where != mine and kind != "due" and not (choice.every or (kind == "failed" and choice.failed)):
        return _NEVER  # not asked for
    if where[:2] != mine[:2]:
        return f"graded on another device (run it on {where[1]})"
    if where != mine:
        return f"graded {'with' if where[2] else 'without'} isolation (--sandbox)"
    if choice.author not in (None, row.author):
        return "of others (without --author)" if kind == "due" else _NEVER
    if kind == "failed" and not (choice.failed or choice.every):
        return "that failed before (--failed)"
    return "up to date, or not the best of an author (--all)" if kind == "other" and not choice.every else ""


def _by_place(
    ledger: JsonlLedger, known: Current, settings: Settings
) -> dict[Place, list[tuple[Kind, Row | RecordedGrading, str]]]:
    """The candidates of a ledger by where they were graded, each source once: due rows, then the others."""
    tables: dict[Place, list[Table]] = {}
    for table in rank(ledger, known, settings.teams):
        tables.setdefault((table.key.device_kind, table.key.device_name, table.key.isolated), []).append(table)
    closed = known.closed.get(ledger.path.stem)
    chosen = selected(ledger.facts().selections(), closed, settings.teams) if closed is not None else {}
    graded: dict[Place, list[RecordedGrading]] = {}
    for grading in gradings(ledger.facts(), known):
        ran = grading.verdict.environment
        graded.setdefault((ran.device_kind, ran.device_name, ran.isolated), []).append(grading)
    found = {}
    for where, of in graded.items():
        rows = list(_ordered(tables.get(where, [])))
        taken = {(row.author, row.sha256) for row, _ in rows}
        ranked = {row.author for table in tables.get(where, []) for row in table.rows}
        others = [grading for grading in newest(of) if (grading.author, grading.sha256) not in taken]
        others.sort(key=lambda grading: (not _failed(grading), grading.author in ranked))
        candidates: list[tuple[Kind, Row | RecordedGrading, str]] = [("due", *row) for row in rows]
        for grading in others:
            if why := _selected(grading, chosen.get(settings.teams.name_of(grading.author), frozenset())):
                candidates.append(("due", grading, why))
            else:
                candidates.append(("failed" if _failed(grading) else "other", grading, _described(grading)))
        found[where] = candidates
    return found


def _selected(grading: RecordedGrading, chosen: Collection[str]) -> str:
    """Why a selected source that is not its author's row is due, as a row would be; empty if it is not."""
    if grading.sha256 not in chosen or grading.stale is None or grading.stale.again is not None:
        return ""
    return f"selected; {grading.stale.reason}"


def _failed(grading: RecordedGrading) -> bool:
    """Whether it failed by what is out of date now."""
    accepted = grading.verdict.outcome is Outcome.ACCEPTED
    return not accepted and grading.stale is not None and grading.stale.again is None


def _described(grading: RecordedGrading) -> str:
    outcome = grading.verdict.outcome.value.replace("_", " ")
    return f"{outcome}; {grading.stale.reason}" if grading.stale else f"{outcome}, and up to date"


def _ordered(tables: list[Table]) -> Iterator[tuple[Row, str]]:
    """Rows that are due, with the reason, one per file: each author's first row, then all others, then late runs."""
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
    """Why a row is due; None if it is not, or was graded again in another table."""
    if row.stale is not None:
        return row.stale.reason if row.stale.again is None else None
    return f"{NO_RANK['too_wide']}, {interval(row.score)}" if row.state == "too_wide" else None


def _here(ledger: JsonlLedger, device: DeviceKind, provider: Provider, facts: DeviceFacts) -> Environment | None:
    """What a grading would find now on this device: the newest that is recorded, with what is known before one.

    What is inside a container is not looked at: its image's digest stands for it.
    """
    newest = newest_environment(ledger.facts().verdicts, (device, facts.device_name, provider.name))
    if newest is None:
        return None
    if provider.name == "docker":
        return newest.model_copy(update={**facts.known(), "image_digest": provider.image_digest()})
    versions = {name: metadata.version(name) for name in ("torch", "triton") if getattr(newest, name) is not None}
    return newest.model_copy(update={**facts.known(), **versions, "python": platform.python_version()})
