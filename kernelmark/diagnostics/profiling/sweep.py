"""Times a kernel and its baselines at many sizes: a grading whose benchmarks differ in one parameter. Trusted."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.errors import ProblemError, UsageError, nearest
from harness.judge.setup import ignore
from harness.problem import Problem
from harness.verdict import Interval, Verdict
from kernelmark.diagnostics.profiling.charts import line_chart
from kernelmark.diagnostics.profiling.folder import write_files
from kernelmark.grading.setup import OnProgress, PreparedJob
from kernelmark.project.problems import find_problem, of_one_case
from kernelmark.project.settings import Settings
from kernelmark.text import spreadsheet
from leaderboard.publishing.site.charts.plot import linear, logarithmic

_MOST = 32  # sizes
_INTENSE = 20.0  # FLOP per byte from which the arithmetic rate is shown


@dataclass(frozen=True)
class Sizes:
    """The values of one parameter."""

    parameter: str
    values: tuple[int, ...]

    @classmethod
    def parse(cls, text: str) -> Sizes:
        """`cols=128:16384` doubles, `cols=128:4096:128` adds, `cols=100,200,300` lists.

        Raises:
            UsageError: it is none of them, or names too many sizes.
        """
        remedy = "write it as cols=128:16384, cols=128:4096:128 or cols=100,200,300"
        match = re.fullmatch(r"(\w+)=(?:(\d+):(\d+)(?::(\d+))?|(\d+(?:,\d+)*))", text)
        if match is None:
            raise UsageError("--sweep", f"{text!r} is not a parameter with sizes", remedy)
        name, low, high, step, listed = match.groups()
        if listed:
            values = [int(size) for size in listed.split(",")]
        elif step:
            values = list(range(int(low), int(high) + 1, int(step) or 1)) if int(step) else []
        else:
            values = [int(low) << k for k in range(64) if 0 < int(low) << k <= int(high)]
        if not 2 <= len(set(values)) <= _MOST:
            raise UsageError("--sweep", f"{text!r} names {len(set(values))} sizes, and not 2 to {_MOST}", remedy)
        return cls(name, tuple(sorted(set(values))))


@dataclass(frozen=True)
class SweepPoint:
    """One kernel at one size."""

    kernel: str
    size: int
    time: Interval | None
    """None of a baseline: only the median of its calls is kept."""
    median_ns: int
    bytes_per_s: float
    flops_per_s: float


def sweep(
    settings: Settings,
    problem: str,
    files: Sequence[Path],
    case: str | None,
    sizes: Sizes,
    on_progress: OnProgress = ignore,
) -> tuple[Verdict, list[SweepPoint]]:
    """Grade the kernel at these sizes, all else as in the case; no points if it was not accepted.

    Raises:
        UsageError: the problem, the case, the parameter or the file is wrong.
        HarnessError: we failed.
    """
    found = find_problem(settings, problem)
    prepared = PreparedJob.prepare(settings, found, files[0], author=settings.author_or_default(), beside=files[1:])
    swept = _swept(of_one_case(found, case, prepared.device), sizes)
    verdict = PreparedJob(settings, swept, prepared.submission).grade(on_progress)
    points = []
    for size, benchmark in zip(sizes.values, verdict.benchmarks, strict=False):
        work = benchmark.minimum_bytes or 0, benchmark.minimum_flops or 0
        points.append(_point("yours", size, benchmark.score, benchmark.score.median_ns, *work))
        points += [_point(baseline.name, size, None, baseline.time_ns, *work) for baseline in benchmark.baselines]
    return verdict, points


def _swept(problem: Problem, sizes: Sizes) -> Problem:
    [case] = problem.benchmarks
    known = [name for name, value in case.params.items() if isinstance(value, int)]
    if sizes.parameter not in known:
        raise UsageError(
            "--sweep", f"{sizes.parameter} is not a size of {problem.slug}", nearest(sizes.parameter, known)
        )
    cases = []
    for value in sizes.values:
        params = {**case.params, sizes.parameter: value}
        cases.append(case.model_copy(update={"name": f"{sizes.parameter} {value}", "params": params}))
        try:
            problem.resolve(cases[-1])
        except ProblemError as error:
            raise UsageError("--sweep", f"{problem.slug} cannot have {sizes.parameter} = {value} ({error})") from None
    return problem.model_copy(update={"benchmarks": tuple(cases)})


def _point(kernel: str, size: int, time: Interval | None, median_ns: int, nbytes: int, flops: int) -> SweepPoint:
    return SweepPoint(kernel, size, time, median_ns, 1e9 * nbytes / median_ns, 1e9 * flops / median_ns)


def rate(points: Sequence[SweepPoint]) -> tuple[str, dict[tuple[str, int], float]]:
    """A unit, and the rate by kernel and size: TFLOP/s if there is much arithmetic per byte, else GB/s."""
    intense = sum(p.flops_per_s for p in points) > _INTENSE * sum(p.bytes_per_s for p in points)
    if intense:
        return "TFLOP/s", {(p.kernel, p.size): p.flops_per_s / 1e12 for p in points}
    return "GB/s", {(p.kernel, p.size): p.bytes_per_s / 1e9 for p in points}


def as_csv(parameter: str, points: Sequence[SweepPoint]) -> str:
    """A line for each kernel and size."""
    rows: list[Sequence[object]] = [(parameter, "kernel", "median_ns", "low_ns", "high_ns", "gb_per_s", "tflop_per_s")]
    for p in points:
        bounds = (p.time.low_ns, p.time.high_ns) if p.time else ("", "")
        rates = (f"{p.bytes_per_s / 1e9:.4g}", f"{p.flops_per_s / 1e12:.4g}")
        rows.append((p.size, p.kernel, p.median_ns, *bounds, *rates))
    return spreadsheet.table(rows, newline="\n")


def as_svg(title: str, parameter: str, points: Sequence[SweepPoint]) -> str:
    """The rates against the size, with a line for each kernel and a legend, as a standalone file."""
    unit, rates = rate(points)
    lines: dict[str, list[tuple[float, float]]] = {}
    for p in points:
        lines.setdefault(p.kernel, []).append((float(p.size), rates[p.kernel, p.size]))
    labels = {
        kernel: [f"{kernel}, {parameter} {x:.0f}: {y:.4g} {unit}" for x, y in own] for kernel, own in lines.items()
    }
    x = logarithmic([p.size for p in points], lambda value: f"{value:g}", parameter)
    y = linear(rates.values(), lambda value, _: f"{value:g}", unit, zero=True)
    return line_chart(title, x, y, lines, labels)


def write(folder: Path, title: str, parameter: str, points: Sequence[SweepPoint]) -> list[Path]:
    """Write `sweep.csv` and `sweep.svg`; returns their paths.

    Raises:
        UsageError: the folder cannot be written.
    """
    table, chart = as_csv(parameter, points), as_svg(title, parameter, points)
    return write_files(folder, {"sweep.csv": spreadsheet.encoded(table), "sweep.svg": chart.encode()})
