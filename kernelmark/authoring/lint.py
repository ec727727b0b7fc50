"""Lints problems: null kernels run in this process, and the organizers' samples are checked in sandboxes.

A problem's README.md, which the site publishes, is compared with problem.toml. `kernelmark problems lint` calls it.
Trusted. The samples go to the judge like any other submission.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from typing_extensions import TypedDict

from harness import sandbox
from harness.errors import HarnessError, ProblemError, UsageError
from harness.files import outside
from harness.kinds import DeviceKind, isolates
from harness.languages import LANGUAGES
from harness.problem import Problem
from harness.problem.signature import prototypes
from harness.problem_lint.finding import Level, LintFinding, cause
from harness.sandbox import Provider
from harness.verdict import Check, Outcome
from kernelmark.authoring.rendering import unrendered
from kernelmark.authoring.samples import EXPECTED, ProblemSample, as_submission, read_samples
from kernelmark.authoring.skeleton import STATEMENT
from kernelmark.grading.fleet import Job, JobResult
from kernelmark.grading.fleet.job import prepared
from kernelmark.grading.fleet.one_by_one import Grades, OneByOne, several
from kernelmark.project.choice import choose_device, providers
from kernelmark.project.problems import read_problem
from kernelmark.project.settings import Settings
from kernelmark.text.progress import BatchReporter
from kernelmark.text.terminal import INDENT, counted, visible

_NAMED = 3  # cases on one line of the terminal; the JSON has all
# A sample that is wrong in few elements may be right by chance. Such a number varies about as a Poisson distribution
# says: where a tenth of all gradings accept the sample, they find 2.3 wrong elements on average, and fewer than five in
# 92 of 100; with ten on average, 1 grading in 22,000 accepts it, and 3 in 100 find fewer than five. Of samples that
# half of all gradings accept, four more gradings let one in 16 go unnoticed.
_FEW = 5
_GRADINGS = 5  # the first one included


@dataclass(frozen=True)
class LintReport:
    """The findings about one problem; `samples` is the number of samples graded, `failure` is ours, if we failed."""

    problem: str
    findings: tuple[LintFinding, ...]
    samples: int = 0
    failure: HarnessError | None = None

    @property
    def wrong(self) -> bool:
        return any(finding.level == "error" for finding in self.findings)


class LintDocument(TypedDict):
    """A report as `kernelmark problems lint` prints it for programs."""

    problem: str
    findings: tuple[LintFinding, ...]
    samples: int
    wrong: bool
    failure: str
    """Why not everything was tested; empty if it was."""


def lint(
    settings: Settings,
    directories: Sequence[Path],
    *,
    with_samples: bool,
    reporter: BatchReporter,
    jobs: int | None = None,
) -> list[LintReport]:
    """Examine problems. With `jobs` samples at a time, the null kernels of the next problem are tried meanwhile.

    Raises:
        UsageError: there are samples, and there is no sandbox for them.
        HarnessError: no sample can be graded.
    """
    device = choose_device(settings.device, "py")
    linted = [_Linted(directory, settings, with_samples=with_samples) for directory in directories]
    later: list[Job] = []  # on a GPU, samples that run on a CPU

    def first() -> Iterator[Job]:
        for problem in linted:
            if problem.problem is not None:
                reporter.say(f"{problem.name}: null kernels")
            samples = list(problem.examine(settings, device))
            reporter.expect(len(samples))
            for job in samples:
                mine = prepared(settings, job)
                if mine.device == device:
                    yield job
                else:
                    later.append(job)

    _check(settings, device, first(), reporter, jobs, None if any(problem.samples for problem in linted) else 0)
    _check(settings, "cpu", later, reporter, jobs, len(later))
    again = [job for problem in linted for job in problem.doubtful()]
    reporter.expect(len(again))
    _collect(OneByOne(settings, reporter.report), again, reporter)  # a fleet would copy the result of the first grading
    return [problem.report() for problem in linted]


def lines(reports: Sequence[LintReport]) -> Iterator[str]:
    """For people: one line per problem, followed by one per finding."""
    for report in reports:
        totals = [sum(f.level == level for f in report.findings) for level in ("error", "warning")]
        result = "FAILED" if report.wrong else "not finished" if report.failure else "passed"
        counts = [counted(n, word) for n, word in zip(totals, ("error", "warning"), strict=True) if n]
        counts.append(f"{counted(report.samples, 'sample') if report.samples else 'no samples'} graded")
        yield f"{visible(report.problem)}: {result} ({', '.join(counts)})"
        for finding in report.findings:
            yield INDENT + visible(_line(finding))


def document(reports: Sequence[LintReport]) -> list[LintDocument]:
    """The same for programs."""
    return [
        {
            "problem": report.problem,
            "findings": report.findings,
            "samples": report.samples,
            "wrong": report.wrong,
            "failure": str(report.failure or ""),
        }
        for report in reports
    ]


def _line(finding: LintFinding) -> str:
    cases = ", ".join(f"`{name}`" for name in finding.cases[:_NAMED])
    if len(finding.cases) > _NAMED:
        cases += f" and {len(finding.cases) - _NAMED} more"
    what = f'null kernel "{finding.kernel}" {finding.what}' if finding.kernel else finding.what
    parts = [finding.level, *([cases] if cases else []), what]
    return ": ".join(parts) + (f"; {finding.remedy}" if finding.remedy else "")


def _finding(level: Level, what: str, remedy: str = "") -> LintFinding:
    """A finding about no case or null kernel."""
    return LintFinding(level, (), "", what, remedy)


def _oddities(directory: Path, samples: dict[str, ProblemSample]) -> Iterator[LintFinding]:
    if not samples:
        yield _finding("note", "has no samples", f"add {EXPECTED} with a right kernel and the likely wrong ones")
        return
    if not any(sample.outcome is Outcome.ACCEPTED for sample in samples.values()):
        yield _finding("warning", "no sample is accepted", "add one that solves the problem")
    known = {sample.file for sample in samples.values()}
    for file in sorted((directory / EXPECTED).parent.iterdir()):
        if file.suffix[1:] in LANGUAGES and file.name not in known:
            yield _finding("error", f"samples/{file.name} is in no table of {EXPECTED}", "name it there")


class _Linted:
    """One problem: its findings so far, and its samples' results by name, in the order of gradings."""

    def __init__(self, directory: Path, settings: Settings, *, with_samples: bool) -> None:
        """Reads the files before torch is loaded, so that an error in them is reported in a second or two."""
        self.name, self._directory = directory.name, directory
        self._findings: list[LintFinding] = []
        self._results: dict[str, list[JobResult]] = defaultdict(list)
        self.samples: dict[str, ProblemSample] = {}
        self.problem: Problem | None = None
        self._failure: HarnessError | None = None
        try:
            self.problem = read_problem(settings, directory, final=True)
            self._findings += contradictions(self.problem)
            if with_samples:
                self.samples = read_samples(directory)
                self._findings += _oddities(directory, self.samples)
        except ProblemError as error:
            self._wrong(error)

    def examine(self, settings: Settings, device: DeviceKind) -> Iterator[Job]:
        """Try the null kernels, then make the jobs of the samples for this device.

        Raises:
            UsageError: as for `lint`.
        """
        problem, samples, self.samples = self.problem, self.samples, {}
        if problem is None:
            return
        try:
            self._findings[:0] = _null_kernels(problem, settings, device)
            if not any(device in case.devices for case in problem.tests):
                return
            self.samples = {name: sample for name, sample in samples.items() if sample.runs_on(device)}
            if self.samples:
                _isolating(settings)  # or refused, before any is graded
            for name, sample in self.samples.items():
                submission = as_submission(self._directory, name, sample)
                yield Job(problem=problem, submission=submission, key=(self, name))
        except ProblemError as error:
            self._wrong(error)
        except HarnessError as error:
            self._failure = error

    def take(self, name: str, result: JobResult) -> None:
        """Keep the result of a sample.

        Raises:
            UsageError: it could not be graded.
        """
        if isinstance(result.error, HarnessError):
            self._failure = self._failure or result.error
        elif result.error is not None and not isinstance(result.error, ProblemError):
            raise result.error
        self._results[name].append(result)

    def doubtful(self) -> Iterator[Job]:
        """The jobs that grade a sample again whose wrong answer may be chance."""
        for name, sample in self.samples.items():
            check = self._results[name][0].check if self._results[name] else None
            if check is None or check.outcome is not Outcome.WRONG_ANSWER or sample.outcome is not check.outcome:
                continue
            if _wrong_elements(check) < _FEW:
                yield from [self._results[name][0].job] * (_GRADINGS - 1)

    def report(self) -> LintReport:
        """All findings, those about the samples in their order."""
        checks = 0
        for name, sample in self.samples.items():
            results = self._results[name]
            graded = [result.check for result in results if result.check is not None]
            if graded:
                checks += 1
                self._findings += _unexpected(name, sample, graded[0])
                self._findings += _by_chance(name, graded)
            for result in results:
                if isinstance(result.error, ProblemError):
                    self._wrong(result.error)
        return LintReport(self.name, tuple(self._findings), checks, self._failure)

    def _wrong(self, error: ProblemError) -> None:
        # The null kernels may have reported it, in another case.
        if cause(str(error)) not in [cause(finding.what) for finding in self._findings]:
            self._findings.append(_finding("error", str(error)))


def _check(
    settings: Settings,
    device: DeviceKind,
    samples: Iterable[Job],
    reporter: BatchReporter,
    jobs: int | None,
    count: int | None,
) -> None:
    """Check samples on a kind of device, and hand the results to their problems."""
    with several(settings, device, jobs, count=count, times=False, on_progress=reporter.report) as grades:
        _collect(grades, samples, reporter)


def _collect(grades: Grades, samples: Iterable[Job], reporter: BatchReporter) -> None:
    for result in grades.check_many(samples):
        assert isinstance(result.job.key, tuple)
        problem, name = result.job.key
        problem.take(name, result)
        outcome = result.check.outcome if result.check is not None else result.error
        reporter.finished(f"{problem.name}: sample {name}", str(outcome))


def _null_kernels(problem: Problem, settings: Settings, device: DeviceKind) -> list[LintFinding]:
    """The findings of `harness.problem_lint`, which loads torch."""
    if problem.foreign is None:
        from harness.problem_lint.examine import examine

        return examine(problem)
    from harness.problem_lint.foreign import examine_foreign

    return examine_foreign(problem, _isolating(settings), device)


def _isolating(settings: Settings) -> Provider:
    """The sandbox for samples and foreign references, which is `process` only if the settings name it.

    Raises:
        UsageError: no other can be used here.
    """
    provider = sandbox.choose(settings.sandbox, providers(settings))
    if not isolates(provider.name) and settings.sandbox != provider.name:
        remedy = "install Docker or bubblewrap, or give --sandbox process or, for your own problems, --no-samples"
        raise UsageError("kernelmark problems lint", "no sandbox for samples and foreign references works here", remedy)
    return provider


def _unexpected(name: str, sample: ProblemSample, check: Check) -> Iterator[LintFinding]:
    said = f" ({check.message})" if check.message else ""
    if check.outcome is not sample.outcome:
        what = f"sample `{name}` is {check.outcome}, where {sample.outcome} is expected{said}"
        remedy = "fix the sample or its table, or the cases, which let it pass"
        if sample.outcome is Outcome.ACCEPTED:
            wrong = [output for case in check.tests for output in case.outputs if not output.correct]
            rounding = any(output.max_error or (output.mismatch and output.mismatch.allowed) for output in wrong)
            remedy = "fix the sample" + (", or raise `tolerance` where it is right" if rounding else "")
        yield _finding("error", what, remedy)
    elif not re.search(sample.message, check.message):
        yield _finding("error", f"sample `{name}`: the message does not match {sample.message!r}{said}")


def _by_chance(name: str, gradings: Sequence[Check]) -> Iterator[LintFinding]:
    """A sample that was refused at first, and accepted on other inputs."""
    refused = [check for check in gradings if check.outcome is not Outcome.ACCEPTED]
    if len(gradings) == 1 or len(refused) == len(gradings):
        return
    most = max(map(_wrong_elements, refused))
    found = f"at most {most:,} of its elements wrong in the others" if most else "only hidden tests refuse it"
    what = f"sample `{name}` is accepted in {len(gradings) - len(refused)} of {len(gradings)} gradings: {found}"
    remedy = "give a test more rows, or inputs on which the sample is wrong every time"
    yield _finding("error", what, remedy)


def _wrong_elements(check: Check) -> float:
    """How many elements the visible tests found wrong; infinity where a test failed in another way.

    The problem's own `compare` counts no elements. Of hidden tests only their failure is known: they count as none.
    """
    failed = [test for test in check.tests if test.outcome is not Outcome.ACCEPTED]
    if any(test.outcome is not Outcome.WRONG_ANSWER for test in failed):
        return math.inf
    wrong = [output.mismatch.wrong for test in failed for output in test.outputs if output.mismatch is not None]
    return sum(wrong) if all(wrong) else math.inf


_DECLARED = re.compile(r'extern\s+"C"\s+void\s+(?P<symbol>\w+)\s*\((?P<arguments>[^)]*)\)')
_IGNORED = re.compile(r"(?<=cudaStream_t)\s+\w+|\s+|\b__restrict(__)?\b")
_PLACEHOLDERS = [line for line in unrendered(STATEMENT).splitlines() if "…" in line]


def contradictions(problem: Problem) -> Iterator[LintFinding]:
    """Find text of the template that is still in the README, and C functions that are declared otherwise elsewhere."""
    yield from _taken(problem)
    try:
        text = outside.text(problem.directory / "README.md")
    except FileNotFoundError:
        return
    except (OSError, UnicodeDecodeError) as error:
        yield _finding("warning", f"README.md cannot be read ({error})", "save it as UTF-8 text")
        return
    lines = {line.strip() for line in text.splitlines()}
    if left := [line for line in _PLACEHOLDERS if line in lines]:
        what = f"README.md still says {', '.join(repr(line) for line in left)}, as the template does"
        yield _finding("warning", what, "write what participants must know, or remove the line")
    known = {suffix: prototypes(problem, suffix) for suffix in ("cu", "cpp")}
    for declared in _DECLARED.finditer(text):
        expected = known["cu" if "cudaStream_t" in declared["arguments"] else "cpp"].get(declared["symbol"])
        if expected is None:
            names = ", ".join(f"`{name}`" for name in sorted({*known["cu"], *known["cpp"]}))
            what = f"README.md declares `{declared['symbol']}`, which no case calls"
            yield _finding("warning", what, f"the functions are {names}")
        elif _bare(declared[0]) != _bare(expected):
            what = f"README.md declares `{' '.join(declared[0].split())}`, which differs from problem.toml"
            yield _finding("warning", what, f"write `{expected}`")


# Functions of C and CUDA that <cmath>, <cstdlib>, <cstring> or every .cu declares, or that a compiler knows.
_DECLARED_IN_C = frozenset(
    """
    abs acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh cospi div erf erfc erfcinv erfinv exp exp10
    exp2 expm1 fabs fdim floor fma fmax fmin fmod frexp gamma hypot j0 j1 jn ldexp lgamma log log10 log1p log2 logb main
    memcpy memset modf nan nearbyint nextafter normcdf pow printf rand rcbrt remainder remove rint round rsqrt scalbn
    select sin sinh sinpi sqrt tan tanh tgamma trunc y0 y1 yn
    """.split()  # noqa: SIM905 - a list literal would be one word a line
)


def _taken(problem: Problem) -> Iterator[LintFinding]:
    """Find C functions of the problem that a .cu or .cpp may be unable to define."""
    for symbol in sorted({*prototypes(problem, "cu"), *prototypes(problem, "cpp")} & _DECLARED_IN_C):
        what = f"`{symbol}` is a function of C or CUDA, which a .cu or .cpp that declares it cannot define again"
        yield _finding("warning", what, f"choose another `entry`, such as {symbol}_kernel")


def _bare(declaration: str) -> str:
    """A declaration without the parts that mean nothing to a caller: spaces, and the name of the stream."""
    return _IGNORED.sub("", declaration)
