"""`kernelmark audit`: runs recorded kernels again under NVIDIA's tools, or tries every known attack on this machine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import click

from harness.errors import HarnessError, UsageError
from kernelmark.commands import complete
from kernelmark.commands.options import device_option, form_option, jobs_option, load_settings, sandbox_option
from kernelmark.project.documents import print_as, print_document
from kernelmark.text.terminal import print_lines, visible

if TYPE_CHECKING:
    from kernelmark.diagnostics.audits import AuditDocument
    from kernelmark.project.settings import Settings


@click.command()
@click.argument("runs", metavar="[RUN]...", nargs=-1, shell_complete=complete.runs)
@click.option("--top", type=click.IntRange(min=1), help="Audit this many top authors of each board of this device.")
@click.option(
    "--problem", metavar="PROBLEM", shell_complete=complete.problems, help="With --top: only this problem's boards."
)
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
    from harness.verdict import Outcome
    from kernelmark.diagnostics import audits as auditing

    audits = []
    for document in auditing.audits(settings, runs, top, problem, record=not no_record):
        audits.append(document)
        if form == "table":
            print_lines(_lines(document))
    if form == "json":
        print_document("audit", audits)
    states = {finding["state"] for document in audits for finding in document["findings"]}
    caught = Outcome.RUNTIME_ERROR.exit_code if "found" in states else 0
    return HarnessError.exit_code if "failed" in states else caught


def _self_test(settings: Settings, only: Sequence[str], jobs: int | None, form: str) -> int:
    from kernelmark.diagnostics import selftest
    from kernelmark.diagnostics.selftest import attempt_all
    from kernelmark.text.progress import BatchReporter

    chosen = selftest.choose(settings, only)
    with BatchReporter(len(chosen)) as reporter:

        def report(trial: selftest.Trial) -> None:
            reporter.finished(f"{trial.case.surface or 'honest'} {trial.case.label}", trial.result)

        trials = attempt_all(settings, chosen, jobs, report)
    print_as(form, "self-test", selftest.document(trials), selftest.lines(trials))
    return HarnessError.exit_code if selftest.failed(trials) else 0


def _lines(document: AuditDocument) -> Iterator[str]:
    yield f"{document['run']} {document['problem']}"
    for finding in document["findings"]:
        yield f"  {finding['tool']:<10} {finding['state']:<7} {visible(finding['text'])}"
