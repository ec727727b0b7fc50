"""Lints problems: tries null kernels in the judge's process, then grades the organizers' samples in a sandbox.

`kernelmark problems lint` calls it. Trusted. The samples go to the judge like any other submission.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from harness import sandbox
from harness.errors import ProblemError, UsageError
from harness.kinds import isolates
from harness.languages import LANGUAGES
from harness.problem import Problem, load
from harness.problem_lint.examine import LintFinding, examine
from harness.verdict import Outcome
from kernelmark.services.choice import choose_device, providers
from kernelmark.services.prepared import PreparedJob
from kernelmark.services.problems import private_folder
from kernelmark.services.samples import EXPECTED, Sample, as_submission, read_samples
from kernelmark.services.settings import Settings
from kernelmark.text.terminal import INDENT, counted, visible

_NAMED = 3  # cases on one line of the terminal; the JSON has all


@dataclass(frozen=True)
class Report:
    """The findings about one problem; `samples` is the number of samples graded."""

    problem: str
    findings: tuple[LintFinding, ...]
    samples: int = 0

    @property
    def wrong(self) -> bool:
        return any(finding.level == "error" for finding in self.findings)


def lint(settings: Settings, directory: Path, *, with_samples: bool, say: Callable[[str], None]) -> Report:
    """Examine one problem; `say` is called with each step before it begins.

    Raises:
        UsageError: it has samples, and there is no sandbox for them.
        HarnessError: a sample could not be graded, twice.
    """
    say(f"{directory.name}: null kernels")
    private = private_folder(settings)
    findings: list[LintFinding] = []
    graded = 0
    try:
        problem = load(directory, private)
        findings += examine(problem)
        if with_samples:
            samples = read_samples(directory)
            findings += _oddities(directory, samples)
            device, here = choose_device(settings.device, "py"), []
            for name, sample in samples.items():
                if device in sample.devices and any(device in case.devices for case in problem.tests):
                    here.append((name, sample))
            isolated = _isolated(settings) if here else settings
            for name, sample in here:
                say(f"{directory.name}: sample {name}")
                findings += _unexpected(isolated, problem, name, sample)
                graded += 1
    except ProblemError as error:
        if str(error) not in [finding.what for finding in findings]:  # the null kernels may have reported it already
            findings.append(LintFinding("error", (), "", str(error)))
    return Report(directory.name, tuple(findings), graded)


def lines(reports: Sequence[Report]) -> Iterator[str]:
    """For people: one line per problem, followed by one per finding."""
    for report in reports:
        totals = [sum(f.level == level for f in report.findings) for level in ("error", "warning")]
        result = "passed" if not report.wrong else "FAILED"
        counts = [counted(n, word) for n, word in zip(totals, ("error", "warning"), strict=True) if n]
        counts.append(f"{counted(report.samples, 'sample') if report.samples else 'no samples'} graded")
        yield f"{visible(report.problem)}: {result} ({', '.join(counts)})"
        for finding in report.findings:
            yield INDENT + visible(_line(finding))


def document(reports: Sequence[Report]) -> list[dict[str, Any]]:
    """The same for programs."""
    return [{**asdict(report), "wrong": report.wrong} for report in reports]


def _line(finding: LintFinding) -> str:
    cases = ", ".join(f"`{name}`" for name in finding.cases[:_NAMED])
    if len(finding.cases) > _NAMED:
        cases += f" and {len(finding.cases) - _NAMED} more"
    what = f'null kernel "{finding.kernel}" {finding.what}' if finding.kernel else finding.what
    parts = [finding.level, *([cases] if cases else []), what]
    return ": ".join(parts) + (f"; {finding.remedy}" if finding.remedy else "")


def _oddities(directory: Path, samples: dict[str, Sample]) -> Iterator[LintFinding]:
    """Findings about the samples as a whole."""
    if not samples:
        yield LintFinding(
            "note", (), "", "has no samples", f"add {EXPECTED} with a right kernel and the likely wrong ones"
        )
        return
    if not any(sample.outcome is Outcome.ACCEPTED for sample in samples.values()):
        yield LintFinding("warning", (), "", "no sample is accepted", "add one that solves the problem")
    known = {sample.file for sample in samples.values()}
    for file in sorted((directory / EXPECTED).parent.iterdir()):
        if file.suffix[1:] in LANGUAGES and file.name not in known:
            yield LintFinding("error", (), "", f"samples/{file.name} is in no table of {EXPECTED}", "name it there")


def _isolated(settings: Settings) -> Settings:
    """The settings with the chosen sandbox filled in; `process` only if the settings name it."""
    provider = sandbox.choose(settings.sandbox, providers(settings))
    if not isolates(provider.name) and settings.sandbox != provider.name:
        remedy = "install Docker or bubblewrap, or give --sandbox process or --no-samples"
        raise UsageError("kernelmark problems lint", "no sandbox for the samples can be used here", remedy)
    return settings.model_copy(update={"sandbox": provider.name})


def _unexpected(settings: Settings, problem: Problem, name: str, sample: Sample) -> Iterator[LintFinding]:
    """Grade one sample: what became of it, where that is not what must."""
    submission = as_submission(problem.directory, name, sample)
    check = PreparedJob.prepare(settings, problem, submission, author="organizer").check()
    said = f" ({check.message})" if check.message else ""
    if check.outcome is not sample.outcome:
        what = f"sample `{name}` is {check.outcome}, where {sample.outcome} is expected{said}"
        remedy = "fix the sample or its table, or the cases, which let it pass"
        if sample.outcome is Outcome.ACCEPTED:
            remedy = "fix the sample, or raise `tolerance` where it is right"
        yield LintFinding("error", (), "", what, remedy)
    elif not re.search(sample.message, check.message):
        yield LintFinding("error", (), "", f"sample `{name}`: the message does not match {sample.message!r}{said}")
