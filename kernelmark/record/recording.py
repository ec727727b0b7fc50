"""Appends verdicts with their sources, and selections, to the record; `publishing` then writes the board.

The Python API and the command line call it. Trusted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from types import MappingProxyType

from harness.errors import UsageError
from harness.problem.schedule import shown
from harness.submission import Submission
from harness.verdict import Verdict
from kernelmark.project.competition import state
from kernelmark.project.settings import Settings
from kernelmark.record.records import FoundRun, ledger
from kernelmark.service.submissions import SelectedRuns
from kernelmark.text.terminal import warn
from leaderboard.record.archive import archive
from leaderboard.record.chain import Head
from leaderboard.record.moderation import Events, Moderation
from leaderboard.record.selection import Selection


def record(
    settings: Settings,
    submission: Submission,
    verdict: Verdict,
    remark: Moderation | None = None,
    *,
    exempt: bool = False,
) -> None:
    """Archive the source and append the verdict to the problem's ledger, in a time that does not grow with the ledger.

    `remark` is an event about the verdict, such as one that keeps it from ranking. An `exempt` verdict does not count
    towards its author's daily limits.

    Raises:
        HarnessError: a file could not be written, and the verdict is not recorded.
    """
    archive(settings.locate("archive"), verdict.problem.slug, submission)
    entry = ledger(settings, verdict.problem.slug).append(verdict, remark, exempt=exempt)
    for warning in entry.warnings:
        warn(warning)


def select(
    settings: Settings, author: str, runs: Iterable[FoundRun], heads: Mapping[str, Head] = MappingProxyType({})
) -> SelectedRuns:
    """Record which runs of an author count once their problem is closed. This replaces an earlier selection.

    Args:
        runs: at least one; they are looked up only if the project has selections.
        heads: with which the ledgers of these problems must begin.

    Raises:
        UsageError: the project has no selections, too many sources are named, a run is of another author or team, the
            runs are of several problems, or their problem is closed.
        HarnessError: as for `record`.
    """
    if settings.selection is None:
        raise UsageError("select", "is for competitions in which authors select", "set `selection` in kernelmark.toml")
    found = [*runs]
    verdicts, ledger = [entry.verdict for _, entry in found], found[0][0]
    slug, now, name = verdicts[0].problem.slug, datetime.now(UTC), settings.teams.name_of(author)
    for verdict in verdicts:
        if settings.teams.name_of(verdict.submission.author) != name:
            raise UsageError(f"run {verdict.run}", f"is not of {name}", "select your own (--author)")
        if verdict.problem.slug != slug:
            raise UsageError(f"run {verdict.run}", f"is not of the problem {slug}", "select on each problem apart")
    sha256s = tuple(dict.fromkeys(verdict.submission.sha256 for verdict in verdicts))
    if len(sha256s) > settings.selection:
        raise UsageError("select", f"names {len(sha256s)} sources, and {settings.selection} may count", "name fewer")
    if (closed := state(settings, slug, now).closed) is not None:
        raise UsageError(f"problem {slug}", f"is closed since {shown(closed)}", "what was selected until then counts")
    selected = tuple(verdict.run for verdict in verdicts)
    selection = Selection(author=author, runs=selected, sha256s=sha256s, created_at=now)
    for warning in ledger.select(selection, heads.get(slug)).warnings:
        warn(warning)
    events = ledger.facts().moderation()
    reasons = {verdict.run: _unranked(verdict, events) for verdict in verdicts}
    nowhere = tuple(f"run {run} is {reason}, and ranks nowhere" for run, reason in reasons.items() if reason)
    return SelectedRuns(author=author, runs=selected, sources=len(sha256s), warnings=nowhere)


def _unranked(verdict: Verdict, events: Events) -> str:
    """Why a verdict has no place, whatever is selected; empty if it may have one."""
    if verdict.score is None:
        return f"not accepted ({verdict.outcome.value.replace('_', ' ')})"
    state = events.state(verdict.run, verdict.submission.sha256, verdict.submission.author)
    return state if state == "disqualified" else ""
