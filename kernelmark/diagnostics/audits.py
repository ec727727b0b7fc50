"""Repeats recorded runs under NVIDIA's tools: `kernelmark audit`.

Trusted; the sources come from the archive, whose hashes are checked. The tools' reports are added to the run as an
annotation: this changes no rank, and the organizers decide what to do about it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from typing_extensions import TypedDict

from harness.device import DEVICES
from harness.errors import KernelmarkError, UsageError
from harness.judge.timing.device_lock import lock_alone
from harness.profiling import nsight, sanitizer
from harness.profiling.sanitizer import ToolReport
from harness.verdict import ProblemId
from kernelmark.project.choice import choose_device, choose_provider
from kernelmark.project.problems import find_problem
from kernelmark.project.settings import Settings
from kernelmark.record.moderating import moderate
from kernelmark.record.records import current, find_run, tables
from kernelmark.text.terminal import say, unexpected
from leaderboard.record.archive import stored

_ACTOR = "kernelmark audit"
_REASON = 1000  # maximum length of an annotation


class AuditFinding(TypedDict):
    """One tool's report."""

    tool: str
    state: str
    text: str


class AuditDocument(TypedDict):
    """All tools' reports on a run."""

    run: str
    problem: str
    findings: list[AuditFinding]


def audits(
    settings: Settings, prefixes: Sequence[str], top: int | None, problem: str | None, *, record: bool
) -> Iterator[AuditDocument]:
    """Run every tool on each of the named runs and yield the reports; with `record`, they are added to the ledger.

    Raises:
        UsageError: before the first tool starts, a run is unknown or cannot be audited here.
    """
    if choose_device(settings.device, "py") != "cuda":
        raise UsageError("kernelmark audit", "its tools need a GPU", "run it on a machine that has one")
    checks: dict[str, Callable[..., ToolReport]] = {
        **{name: partial(sanitizer.audit, watcher) for name, watcher in sanitizer.checks().items()},
        "ncu": nsight.audit,
    }
    nsight.watcher()  # raises before anything starts if it is not installed
    provider, now, found = choose_provider(settings), current(settings), []
    for prefix in (*prefixes, *(first(settings, top, problem) if top else ())):
        verdict = find_run(settings, prefix)[1].verdict
        if verdict.environment.device_kind != "cuda":
            raise UsageError(f"run {verdict.run}", "was graded on a CPU", "name a run graded on a GPU")
        graded = find_problem(settings, verdict.problem.slug)
        if now.sha256(verdict.problem) != verdict.problem.sha256:
            raise UsageError(f"run {verdict.run}", "its problem has changed since", "`kernelmark regrade` first")
        found.append((verdict.run, graded, stored(settings.locate("archive"), graded.slug, verdict.submission)))
    for run, graded, submission in found:
        by_tool = {
            name: _report(partial(audit, graded, submission, provider=provider, device="cuda"), run, name)
            for name, audit in checks.items()
        }
        if record:
            said = "; ".join(f"{name}: {report.text}" for name, report in by_tool.items())
            moderate(settings, [run], "annotate", _ACTOR, said[:_REASON])
        findings: list[AuditFinding] = [
            {"tool": name, "state": report.state, "text": report.text} for name, report in by_tool.items()
        ]
        yield {"run": run, "problem": graded.slug, "findings": findings}


def _report(audit: Callable[..., ToolReport], run: str, name: str) -> ToolReport:
    def report(what: str) -> None:
        say(f"{run} {name}: {what}")

    try:
        with lock_alone("cuda", lambda: report("waiting: another grading is using this GPU")):
            return audit(on_case=report)
    except KernelmarkError as error:
        return ToolReport("failed", str(error))
    except Exception as error:  # noqa: BLE001  # the other tools and runs still get their turn
        return ToolReport("failed", unexpected(error))


def first(settings: Settings, count: int, problem: str | None) -> Iterator[str]:
    """The runs of the first `count` rows of each current table of this machine's GPU, one run of each file."""
    now, device, seen = current(settings), DEVICES["cuda"].facts().device_name, set[tuple[str, str]]()
    for table in tables(settings, problem):
        key = table.key
        ranked = ProblemId(slug=key.problem, sha256=key.problem_sha256, private=table.private)
        as_now = (now.sha256(ranked), now.protocol, device)
        if (key.problem_sha256, key.protocol, key.device_name) == as_now:
            for row in table.ranked[:count]:
                if (key.problem, row.sha256) not in seen:
                    seen.add((key.problem, row.sha256))
                    yield row.run
