"""Finds two runs whose sources `kernelmark show --diff` compares. Trusted, over sources that are hostile text."""

from __future__ import annotations

from datetime import UTC, datetime

from harness.errors import UsageError
from harness.verdict import Verdict
from kernelmark.project.settings import Settings
from kernelmark.record.publishing import rules
from kernelmark.record.records import find_run
from kernelmark.text.difference import Sourced
from leaderboard.record.archive import stored
from leaderboard.record.entry import Entry
from leaderboard.record.ledger import JsonlLedger
from leaderboard.standings.visibility import Rule


def revision(settings: Settings, run: str, other: str | None = None) -> tuple[Sourced, Sourced]:
    """Two runs with their sources: an older one, and the one whose id begins with `run`.

    The older one is `other`. By default it is the author's fastest accepted run with another source before it, on the
    same version of the problem and the same device and timed in the same way; or else the author's last one before it.
    A source is read only if its author is that of these settings, or the problem's sources may be shown now.

    Raises:
        UsageError: there is no such run, no run before it, it is of another problem, or its source may not be shown.
        HarnessError: a source is missing or is not what was graded, or a ledger is broken.
    """
    ledger, entry = find_run(settings, run)
    after = entry.verdict
    if other is None:
        before = _before(ledger, entry)
        if before is None:
            what = f"is {after.submission.author}'s first source on {after.problem.slug}: there is none to compare"
            raise UsageError(f"run {after.run}", what, "name another run as well: `kernelmark show RUN OTHER --diff`")
    else:
        before = find_run(settings, other)[1].verdict
        if before.problem.slug != after.problem.slug:
            what = f"is of the problem {before.problem.slug}, not of {after.problem.slug}"
            raise UsageError(f"run {before.run}", what, "compare runs of one problem")
    return _sourced(settings, before), _sourced(settings, after)


def _before(ledger: JsonlLedger, entry: Entry) -> Verdict | None:
    after = entry.verdict
    of, alike = after.submission, (after.environment.device_name, after.problem.sha256, after.timing)
    earlier = [
        v for v in ledger.facts().verdicts if v.seq < entry.seq and v.author == of.author and v.sha256 != of.sha256
    ]
    timed = [
        v for v in earlier if v.median_ns and (v.environment.device_name, v.problem.sha256, v.setting.timing) == alike
    ]
    chosen = min(timed, key=lambda v: v.median_ns or 0) if timed else next(reversed(earlier), None)
    return next(iter(ledger.at({chosen.seq}))).verdict if chosen is not None else None


def _sourced(settings: Settings, verdict: Verdict) -> Sourced:
    slug, author = verdict.problem.slug, verdict.submission.author
    rule = rules(settings, slug).get(slug) or Rule(problem=slug)
    if author != settings.author_or_default() and (why := rule.hidden(datetime.now(UTC))):
        raise UsageError(f"run {verdict.run}", f"the source of {author} is not shown: {why.rstrip('.')}")
    return Sourced(verdict, stored(settings.locate("archive"), slug, verdict.submission))
