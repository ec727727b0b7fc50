"""`kernelmark audit`: repeats recorded runs under NVIDIA's tools, or tests this machine with every known attack.

`cli` adds the command. Trusted; the sources come from the archive, whose hashes are checked. What the tools report is
appended to the run as an annotation: it changes no rank, and the organizers decide what to do about it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from harness.errors import HarnessError, KernelmarkError, UsageError
from kernelmark.commands import complete
from kernelmark.commands.options import device_option, form_option, jobs_option, load_settings, sandbox_option
from kernelmark.text.printing import print_json, print_lines, say
from kernelmark.text.terminal import visible
from kernelmark.text.unexpected import unexpected

if TYPE_CHECKING:
    from harness.audit.tools import Tool, ToolReport
    from harness.problem import Problem
    from harness.sandbox import Provider
    from harness.submission import Submission
    from kernelmark.project.settings import Settings

_ACTOR = "kernelmark audit"
_REASON = 1000  # maximum length of an annotation


@click.command()
@click.argument("runs", metavar="[RUN]...", nargs=-1, shell_complete=complete.runs)
@click.option("--top", type=click.IntRange(min=1), help="Audit this many top authors of each board of this device.")
@click.option("--problem", metavar="PROBLEM", help="With --top: only this problem's boards.")
@click.option("--no-record", is_flag=True, help="Print what the tools report, and append nothing.")
@click.option("--self-test", is_flag=True, help="Try every known attack here instead, and every honest kernel.")
@click.option("--only", multiple=True, metavar="TEXT", help="With --self-test: this case or surface, or `honest`.")
@jobs_option("With --self-test. [default: by the processors that there are, on a GPU; a CPU tries one at a time]")
@sandbox_option("How to isolate them.")
@device_option("On which device.")
@form_option
def audit(
    runs: Sequence[str],
    top: int | None,
    problem: str | None,
    no_record: bool,
    self_test: bool,
    only: Sequence[str],
    jobs: int | None,
    form: str,
    **flags: str | None,
) -> int:
    """Repeat RUN under compute-sanitizer and Nsight Compute, and append what they report; or test this machine itself.

    Exit status: 0 if nothing was found, 4 if a tool found a fault in a kernel, 7 if a tool failed; with --self-test, 7
    if an attack succeeded or an honest kernel was refused.
    """
    from harness.verdict import Outcome

    settings = load_settings(**flags)
    if self_test:
        if runs or top or problem or no_record:
            raise UsageError("--self-test", "cannot be combined", "leave out runs, --top, --problem and --no-record")
        return _self_test(settings, only, jobs, form)
    if jobs is not None:
        raise UsageError("--jobs", "needs --self-test", "leave it out: the tools watch one run at a time")
    if only or not (runs or top):
        raise UsageError("kernelmark audit", "needs a RUN, --top or --self-test", "`kernelmark board` lists the runs")
    if problem and not top:
        raise UsageError("--problem", "needs --top", "say how many authors of its boards")
    audits = []
    for each in _prepare(settings, runs, top, problem):
        audits.append(each.document(record=not no_record))
        if form == "table":
            print_lines(_lines(audits[-1]))
    if form == "json":
        print_json(audits)
    states = {finding["state"] for each in audits for finding in each["findings"]}
    caught = Outcome.RUNTIME_ERROR.exit_code if "found" in states else 0
    return HarnessError.exit_code if "failed" in states else caught


@dataclass(frozen=True)
class _Audit:
    """One run to audit, and everything that this needs."""

    settings: Settings
    run: str
    problem: Problem
    submission: Submission
    tools: Sequence[Tool]
    provider: Provider

    def document(self, *, record: bool) -> dict[str, Any]:
        """Run every tool; returns what each reported, and appends it to the ledger if `record`."""
        by_tool = {tool.name: self._watch(tool) for tool in self.tools}
        if record:
            from kernelmark.record.recording import moderate

            said = "; ".join(f"{name}: {finding.text}" for name, finding in by_tool.items())
            moderate(self.settings, self.run, "annotate", _ACTOR, said[:_REASON])
        findings = [{"tool": name, "state": each.state, "text": each.text} for name, each in by_tool.items()]
        return {"run": self.run, "problem": self.problem.slug, "findings": findings}

    def _watch(self, tool: Tool) -> ToolReport:
        from harness.audit.run import audit as watch
        from harness.audit.tools import ToolReport
        from harness.judge.timing.device_lock import lock_alone

        def report(what: str) -> None:
            say(f"{self.run} {tool.name}: {what}")

        try:
            with lock_alone("cuda", lambda: report("waiting: another grading is using this GPU")):
                return watch(self.problem, self.submission, tool, provider=self.provider, device="cuda", on_case=report)
        except KernelmarkError as error:
            return ToolReport("failed", str(error))
        except Exception as error:  # noqa: BLE001  # the other tools and runs still get their turn
            return ToolReport("failed", unexpected(error))


def _prepare(settings: Settings, prefixes: Sequence[str], top: int | None, problem: str | None) -> list[_Audit]:
    """Find the named runs; every usage error is raised before the first tool starts."""
    from harness.audit import tools
    from kernelmark.project.choice import choose_device, choose_provider
    from kernelmark.project.problems import find_problem
    from kernelmark.record.records import current, find_run
    from leaderboard.record.archive import stored

    if choose_device(settings.device, "py") != "cuda":
        raise UsageError("kernelmark audit", "its tools need a GPU", "run it on a machine that has one")
    provider, watchers, now = choose_provider(settings), tools.find(), current(settings)
    audits = []
    for prefix in (*prefixes, *(_first(settings, top, problem) if top else ())):
        verdict = find_run(settings, prefix)[1].verdict
        if verdict.environment.device_kind != "cuda":
            raise UsageError(f"run {verdict.run}", "was graded on a CPU", "name a run graded on a GPU")
        graded = find_problem(settings, verdict.problem.slug)
        if now.sha256(verdict.problem) != verdict.problem.sha256:
            raise UsageError(f"run {verdict.run}", "its problem has changed since", "`kernelmark regrade` first")
        submission = stored(settings.locate("archive"), graded.slug, verdict.submission)
        audits.append(_Audit(settings, verdict.run, graded, submission, watchers, provider))
    return audits


def _first(settings: Settings, count: int, problem: str | None) -> Iterator[str]:
    """The runs of the first authors of each current table of this machine's GPU; of a file that is in two, one."""
    from harness.device import DEVICES
    from harness.verdict import ProblemId
    from kernelmark.record.records import current, tables

    now, device, seen = current(settings), DEVICES["cuda"].facts().device_name, set[tuple[str, str]]()
    for table in tables(settings, problem):
        key = table.key
        asked = ProblemId(slug=key.problem, sha256=key.problem_sha256, private=table.private)
        as_now = (now.sha256(asked), now.protocol, device)
        if (key.problem_sha256, key.protocol, key.device_name) == as_now:
            for row in table.ranked[:count]:
                if (key.problem, row.sha256) not in seen:
                    seen.add((key.problem, row.sha256))
                    yield row.run


def _self_test(settings: Settings, only: Sequence[str], jobs: int | None, form: str) -> int:
    from kernelmark.diagnostics import selftest
    from kernelmark.diagnostics.selftest.side_by_side import attempt_all
    from kernelmark.text.batch import BatchReporter

    chosen = selftest.choose(settings, only)
    with BatchReporter(len(chosen)) as reporter:

        def report(trial: selftest.Trial) -> None:
            reporter.finished(f"{trial.case.surface or 'honest'} {trial.case.label}", trial.result)

        trials = attempt_all(settings, chosen, jobs, report)
    print_json(selftest.document(trials)) if form == "json" else print_lines(selftest.lines(trials))
    return HarnessError.exit_code if selftest.failed(trials) else 0


def _lines(document: dict[str, Any]) -> Iterator[str]:
    yield f"{document['run']} {document['problem']}"
    for finding in document["findings"]:
        yield f"  {finding['tool']:<10} {finding['state']:<7} {visible(finding['text'])}"
