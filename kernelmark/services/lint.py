"""Lints problems: null kernels in the judge's process, then the organizers' samples in a sandbox; prints the findings.

`kernelmark problems lint` calls it. Trusted. A problem's samples are `samples/expected.toml` and the files that it
names: submissions whose outcome is known. They go to the judge like any other.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from harness import sandbox
from harness.errors import ProblemError, UsageError
from harness.kinds import isolates
from harness.languages import LANGUAGES
from harness.problem import DeviceKind, Problem, load
from harness.problem_lint.examine import Finding, examine
from harness.submission import Submission
from harness.verdict import Outcome
from kernelmark.services.api import Job, choose_device, providers
from kernelmark.services.problems import private_folder
from kernelmark.services.settings import Settings
from kernelmark.text.terminal import INDENT, counted, visible

EXPECTED = Path("samples") / "expected.toml"
_NAMED = 3  # cases on one line of the terminal; the JSON has all


class Sample(BaseModel):
    """One table of `expected.toml`: a submission, and what must become of it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    file: Annotated[str, Field(pattern=r"^\w[\w.-]*\.(py|cu|cpp)$", description="in the same folder")]
    outcome: Outcome
    devices: Annotated[tuple[DeviceKind, ...], Field(min_length=1)] = ("cpu", "cuda")
    message: str = Field(default="", description="a pattern that the verdict's message must hold")


@dataclass(frozen=True)
class Report:
    """What is to be said of one problem; `samples` were graded."""

    problem: str
    findings: tuple[Finding, ...]
    samples: int = 0

    @property
    def wrong(self) -> bool:
        return any(finding.level == "error" for finding in self.findings)


def lint(settings: Settings, directory: Path, *, with_samples: bool, say: Callable[[str], None]) -> Report:
    """Examine one problem; `say` is told what is about to be tried.

    Raises:
        UsageError: it has samples, and there is no sandbox for them.
        HarnessError: a sample could not be graded, twice.
    """
    say(f"{directory.name}: null kernels")
    private = private_folder(settings)
    findings: list[Finding] = []
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
        if str(error) not in [finding.what for finding in findings]:  # the null kernels may have met it before
            findings.append(Finding("error", (), "", str(error)))
    return Report(directory.name, tuple(findings), graded)


def read_samples(directory: Path) -> dict[str, Sample]:
    """The samples of a problem's directory by name, none if it has no `samples/expected.toml`.

    Raises:
        ProblemError: the file is wrong, or a sample that it names is not there.
    """
    path = directory / EXPECTED
    if not path.is_file():
        return {}
    try:
        samples = TypeAdapter(dict[str, Sample]).validate_python(tomllib.loads(path.read_text("utf-8")))
        for sample in samples.values():
            re.compile(sample.message)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, re.error) as error:
        raise ProblemError(str(path), f"cannot be read ({error})") from None
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(map(str, first["loc"]))
        raise ProblemError(str(path), f"key `{key}`: {first['msg'].lower()}") from None
    for name, sample in samples.items():
        if not (path.parent / sample.file).is_file():
            raise ProblemError(str(path), f"sample `{name}` names {sample.file}, which is not there")
    return samples


def lines(reports: Sequence[Report]) -> Iterator[str]:
    """For people: a line a problem, below it one for each finding."""
    for report in reports:
        count = [sum(f.level == level for f in report.findings) for level in ("error", "warning")]
        said = "passed" if not report.wrong else "FAILED"
        told = [counted(n, word) for n, word in zip(count, ("error", "warning"), strict=True) if n]
        told.append(f"{counted(report.samples, 'sample') if report.samples else 'no samples'} graded")
        yield f"{visible(report.problem)}: {said} ({', '.join(told)})"
        for finding in report.findings:
            yield INDENT + visible(_line(finding))


def document(reports: Sequence[Report]) -> list[dict[str, Any]]:
    """The same for machines."""
    return [{**asdict(report), "wrong": report.wrong} for report in reports]


def _line(finding: Finding) -> str:
    cases = ", ".join(f"`{name}`" for name in finding.cases[:_NAMED])
    if len(finding.cases) > _NAMED:
        cases += f" and {len(finding.cases) - _NAMED} more"
    what = f'null kernel "{finding.kernel}" {finding.what}' if finding.kernel else finding.what
    parts = [finding.level, *([cases] if cases else []), what]
    return ": ".join(parts) + (f"; {finding.remedy}" if finding.remedy else "")


def _oddities(directory: Path, samples: dict[str, Sample]) -> Iterator[Finding]:
    """What is strange about the samples as a whole."""
    if not samples:
        yield Finding("note", (), "", "has no samples", f"add {EXPECTED} with a right kernel and the likely wrong ones")
        return
    if not any(sample.outcome is Outcome.ACCEPTED for sample in samples.values()):
        yield Finding("warning", (), "", "no sample is accepted", "add one that solves the problem")
    known = {sample.file for sample in samples.values()}
    for file in sorted((directory / EXPECTED).parent.iterdir()):
        if file.suffix[1:] in LANGUAGES and file.name not in known:
            yield Finding("error", (), "", f"samples/{file.name} is in no table of {EXPECTED}", "name it there")


def _isolated(settings: Settings) -> Settings:
    """The settings with the sandbox that they come to; never by chance the one that isolates nothing."""
    provider = sandbox.choose(settings.sandbox, providers(settings))
    if not isolates(provider.name) and settings.sandbox != provider.name:
        remedy = "install Docker or bubblewrap, or give --sandbox process or --no-samples"
        raise UsageError("kernelmark problems lint", "no sandbox for the samples can be used here", remedy)
    return settings.model_copy(update={"sandbox": provider.name})


def _unexpected(settings: Settings, problem: Problem, name: str, sample: Sample) -> Iterator[Finding]:
    """Grade one sample: what became of it, where that is not what must."""
    file = (problem.directory / EXPECTED).parent / sample.file
    check = Job.prepare(settings, problem, Submission.read(file, "organizer"), author="organizer").check()
    said = f" ({check.message})" if check.message else ""
    if check.outcome is not sample.outcome:
        what = f"sample `{name}` is {check.outcome}, where {sample.outcome} is expected{said}"
        remedy = "fix the sample or its table, or the cases, which let it pass"
        if sample.outcome is Outcome.ACCEPTED:
            remedy = "fix the sample, or raise `tolerance` where it is right"
        yield Finding("error", (), "", what, remedy)
    elif not re.search(sample.message, check.message):
        yield Finding("error", (), "", f"sample `{name}`: the message does not match {sample.message!r}{said}")
