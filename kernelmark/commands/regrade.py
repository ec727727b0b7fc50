"""Grades rows again that are out of date or too imprecise to rank: `kernelmark regrade`.

The command line calls it. Trusted; the sources come from the archive, whose hashes are checked.
`leaderboard.standings.staleness` decides which rows are stale, and the ranking which are too wide; this module adds
what a grading on this machine would use now.
"""

from __future__ import annotations

import platform
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from typing import TYPE_CHECKING

from harness.kinds import isolates
from kernelmark.commands.several import Asked, Ready
from kernelmark.services.choice import choose_device, providers
from kernelmark.services.prepared import PreparedJob, Remark
from kernelmark.services.records import current, ledgers
from kernelmark.services.settings import Settings
from leaderboard.record.archive import stored
from leaderboard.record.entry import VERDICT
from leaderboard.standings.pooling import NO_RANK
from leaderboard.standings.ranking import rank
from leaderboard.standings.staleness import newest_environment
from leaderboard.text.units import interval

if TYPE_CHECKING:
    from harness.device import DeviceFacts
    from harness.sandbox import Provider
    from harness.verdict import DeviceKind, Environment
    from leaderboard.record.ledger import JsonlLedger
    from leaderboard.standings.ranking import Row, SetAside, Table


@dataclass(frozen=True)
class Due:
    """A row to be graded again, or a run that was late, and its ledger."""

    ledger: JsonlLedger
    row: Row | SetAside
    reason: str

    def __str__(self) -> str:
        row = self.row
        return f"{self.ledger.path.stem} {row.run} {row.submission} by {row.author}: {self.reason}"


def due(settings: Settings, problem: str | None) -> list[Due]:
    """The rows that this machine can and should grade again: first each author's best in the newest table, by rank.

    A stale row is due until it was graded again; a row too wide to rank is graded once more by each call, and pooled.
    Runs that were late come last: they do not rank, but have a mark. Rows of other devices, or with another isolation
    than this sandbox, are left to other machines or flags.

    Raises:
        UsageError, HarnessError: the problem is unknown, a ledger is broken, or there is no such sandbox or device.
    """
    from harness.device import DEVICES
    from harness.sandbox import choose

    device = choose_device(settings.device, "py")
    provider = choose(settings.sandbox, providers(settings))
    facts, now, due_rows = DEVICES[device].facts(), current(settings), list[Due]()
    for ledger in ledgers(settings, problem):
        if ledger.path.stem not in now.problems:
            continue  # its problem is gone, and cannot be graded at all
        here = _here(ledger, device, provider, facts)
        known = now.model_copy(update={"environments": (here,) if here else ()})
        mine = (device, facts.device_name, isolates(provider.name))
        tables = [
            table
            for table in rank(ledger.read(), known, settings.teams)
            if (table.key.device_kind, table.key.device_name, table.key.isolated) == mine
        ]
        due_rows += [Due(ledger, row, reason) for row, reason in _ordered(tables)]
    return due_rows


def asked(settings: Settings, due: Due) -> Asked:
    """A row as `several` grades it: even after the deadline, since nothing new is submitted. What was late stays so."""

    def read() -> Ready:
        entry = next(entry for entry in due.ledger.read() if entry.seq == due.row.seq and entry.kind == VERDICT)
        slug = due.ledger.path.stem
        submission = stored(settings.locate("archive"), slug, entry.verdict.submission)
        problem = settings.locate("problems") / slug
        job = PreparedJob.prepare(settings, problem, submission, author=submission.author)
        return Ready(job, _remark(due.row), exempt=True)

    return Asked(str(due), read)


def _remark(row: Row | SetAside) -> Remark | None:
    """What is recorded with the new run of a late one: the same again."""
    said = next((event for event in reversed(row.moderation) if row.state == "late" and event.action == "late"), None)
    return Remark("late", said.actor, said.reason) if said is not None else None


def _ordered(tables: list[Table]) -> Iterator[tuple[Row | SetAside, str]]:
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


def _reason(row: Row | SetAside) -> str | None:
    """Why a row is due; None if it is not, or was graded again in another table."""
    if row.stale is not None:
        return row.stale.reason if row.stale.again is None else None
    return f"{NO_RANK['too_wide']}, {interval(row.score)}" if row.state == "too_wide" else None


def _here(ledger: JsonlLedger, device: DeviceKind, provider: Provider, facts: DeviceFacts) -> Environment | None:
    """What a grading would find now on this device: the newest that is recorded, with what can be told before one.

    What is inside a container is not looked at: its image's digest stands for it.
    """
    newest = newest_environment(ledger.read(), (device, facts.device_name, provider.name))
    if newest is None:
        return None
    if provider.name == "docker":
        return newest.model_copy(update={**facts.known(), "image_digest": provider.image_digest()})
    versions = {name: metadata.version(name) for name in ("torch", "triton") if getattr(newest, name) is not None}
    return newest.model_copy(update={**facts.known(), **versions, "python": platform.python_version()})
