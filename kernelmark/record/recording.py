"""Appends a verdict with its source, or a moderation event, to the record; `publishing` writes the board after it.

The Python API and the command line call it. Trusted. The settings say where each file is.
"""

from __future__ import annotations

from datetime import UTC, datetime

from pydantic import ValidationError

from harness.errors import UsageError
from harness.submission import Submission
from harness.verdict import Verdict
from kernelmark.project.settings import Settings
from kernelmark.record.publishing import publish
from kernelmark.record.records import find_run, ledger, ledgers, whole
from kernelmark.text.terminal import warn
from leaderboard.record.archive import archive
from leaderboard.record.moderation import Action, Moderation, Scope


def record(
    settings: Settings,
    submission: Submission,
    verdict: Verdict,
    remark: Moderation | None = None,
    *,
    exempt: bool = False,
) -> None:
    """Archive the source and append the verdict to the problem's ledger; the cost does not grow with the ledger.

    `remark` is an event about it, such as one that keeps it from ranking. One that is `exempt` does not count towards
    its author's limits a day.

    Raises:
        HarnessError: a file could not be written, and the verdict is not recorded.
    """
    archive(settings.locate("archive"), verdict.problem.slug, submission)
    entry = ledger(settings, verdict.problem.slug).append(verdict, remark, exempt=exempt)
    for warning in entry.warnings:
        warn(warning)


def moderate(
    settings: Settings, prefix: str, action: Action, actor: str, reason: str, scope: Scope = "run"
) -> Moderation:
    """Append a moderation event to the ledger that holds a run, and publish the board.

    With the scope "source" it covers every run of that run's source in this ledger. With "author" it covers every run
    of that run's author, and is appended to every ledger of the project.

    Raises:
        UsageError: no run or several runs begin with these digits, or the actor or the reason is empty or too long.
        HarnessError: as for `record` and `publish`.
    """
    of = whole(settings)
    ledger, entry = find_run(of, prefix)
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
    for holding in ledgers(of) if scope == "author" else [ledger]:
        for warning in holding.moderate(event).warnings:
            warn(warning)
        publish(settings, holding.path.stem)
    return event
