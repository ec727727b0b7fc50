"""Appends a verdict with its source, or a moderation event, to the record, and updates the board.

The Python API and the command line call it. Trusted. The settings say where each file is.
"""

from __future__ import annotations

from datetime import UTC, datetime

from pydantic import ValidationError

from harness.errors import HarnessError, UsageError
from harness.submission import Submission
from harness.verdict import Verdict
from kernelmark.project.settings import Settings
from kernelmark.record.publishing import publish
from kernelmark.record.records import find_run, ledgers
from kernelmark.text.terminal import warn
from leaderboard.record.archive import archive
from leaderboard.record.ledger import JsonlLedger
from leaderboard.record.moderation import Action, Moderation, Scope
from leaderboard.standings.ranking import Table, rank


def record(
    settings: Settings,
    submission: Submission,
    verdict: Verdict,
    remark: Moderation | None = None,
    *,
    exempt: bool = False,
) -> Table | None:
    """Archive the source, append the verdict to the problem's ledger, and update the board.

    `remark` is an event about it, such as one that keeps it from ranking. One that is `exempt` does not count towards
    its author's limits a day. Returns the table that an accepted verdict belongs to.

    Raises:
        HarnessError: a file could not be written; if that was only the board, the verdict is recorded.
    """
    results = settings.locate("results")
    archive(settings.locate("archive"), verdict.problem.slug, submission)
    entry = JsonlLedger(results / f"{verdict.problem.slug}.jsonl").append(verdict, remark, exempt=exempt)
    for warning in entry.warnings:
        warn(warning)
    standings = _published(settings, verdict.problem.slug)
    if verdict.problem.private is None and any(table.private for table in standings):
        warn(f"{verdict.problem.slug} has results with private cases, but this one has none: is `private_cases` set?")
    keys = [alone.key for alone in rank([entry])]
    return next((table for table in standings if table.key in keys), None)


def moderate(
    settings: Settings, prefix: str, action: Action, actor: str, reason: str, scope: Scope = "run"
) -> Moderation:
    """Append a moderation event to the ledger that holds a run, and update the board.

    With the scope "source" it covers every run of that run's source in this ledger. With "author" it covers every run
    of that run's author, and is appended to every ledger of the project.

    Raises:
        UsageError: no run or several runs begin with these digits, or the actor or the reason is empty or too long.
        HarnessError: as for `record`.
    """
    ledger, entry = find_run(settings, prefix)
    verdict = entry.verdict
    try:
        event = Moderation(
            run=verdict.run,
            action=action,
            scope=scope,
            sha256=verdict.submission.sha256 if scope == "source" else None,
            author=verdict.submission.author if scope == "author" else None,
            actor=actor,
            reason=reason,
            created_at=datetime.now(UTC),
        )
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise UsageError(f"--{first['loc'][0]}", f"is not valid: {first['msg']}") from error
    for each in ledgers(settings) if scope == "author" else [ledger]:
        for warning in each.moderate(event).warnings:
            warn(warning)
        _published(settings, each.path.stem)
    return event


def _published(settings: Settings, slug: str) -> list[Table]:
    """Update the board after an append; if that fails, say that the append itself need not be repeated."""
    try:
        return publish(settings, slug)
    except HarnessError as error:
        remedy = error.remedy or "`kernelmark board --write` rebuilds the board"
        raise HarnessError(f"it is recorded, but {error.what}", remedy) from error
