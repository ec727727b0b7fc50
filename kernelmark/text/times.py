"""Formats the times of a verdict as plain text: the table of every grading, and one case in full.

`show` calls it. Trusted code over untrusted text: names and doubts go through `visible`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from harness import stats
from kernelmark.text.terminal import INDENT, columns, counted, visible
from leaderboard.text import kernels as kernel_table
from leaderboard.text.metrics import METRICS, peak_bytes
from leaderboard.text.units import duration, interval, ratio, size
from leaderboard.text.visible import parameters

if TYPE_CHECKING:
    from harness.verdict import (
        BenchmarkResult,
        Doubt,
        Effort,
        Interval,
        PairedBaseline,
        Ratio,
        ReplayedBenchmark,
        Verdict,
    )

_STOPPED = {
    "converged": "the intervals were narrow enough",
    "budget": "time ran out before the intervals were narrow",
    "unstable": "the interval stayed wide",
}
_HOW = {
    "graphs": "captured calls, replayed as one graph, as before protocol 5",
    "calls": "plain calls: the submission's own code ran",
    "replayed": "replayed: a launcher made the recorded calls",
}
_CONFIDENT = 0.9  # below this confidence, a doubt says that an interval does not reach 95 %
_MEASURE_MORE: Mapping[Effort, str] = {
    "screen": "grade again with the effort quick",
    "quick": "grade again without --quick",
    "default": "grade again with --thorough",
    "thorough": "grade again on a quiet machine",
}
_LETTERS = 40  # maximum length of a kernel's name


def table(result: Verdict, score: Interval) -> Iterator[str]:
    """A table with a row for each case: the time, the speedups, the metrics."""
    names = sorted({paired.name for b in result.benchmarks for paired in b.baselines})
    metrics = [metric for metric in METRICS if metric.in_tables and any(map(metric.cell, result.benchmarks))]
    head = ["case", "time", "95 % interval", *(f"× {visible(name)}" for name in names)]
    head += [metric.heading for metric in metrics]
    rows = []
    for b in result.benchmarks:
        paired = {baseline.name: baseline.speedup for baseline in b.baselines}
        line = [visible(b.name), *cells(b.score), *(ratio(paired[n]) if n in paired else "" for n in names)]
        rows.append((*line, *(metric.cell(b) for metric in metrics)))
    overall = {speedup.baseline: speedup.ratio for speedup in result.speedups}
    mean = ["geometric mean", *cells(score), *(ratio(overall[n]) if n in overall else "" for n in names)]
    rows.append((*mean, *("" for _ in metrics)))
    yield from columns(rows, head=head, right={1})


def memory(result: Verdict) -> Iterator[str]:
    """A line for each case: the most device memory that a call of the submission and of each baseline allocates."""
    for b in result.benchmarks:
        if (own := peak_bytes(b)) is not None:
            others = [f"{visible(o.name)} {size(o.peak_bytes)}" for o in b.baselines if o.peak_bytes is not None]
            yield f"{visible(b.name)}: {', '.join([size(own), *others])}"


def kernels(b: ReplayedBenchmark) -> Iterator[str]:
    """The kernels that a call launches, in order."""
    rows, head = [kernel_table.cells(kernel, _LETTERS) for kernel in b.kernels], kernel_table.HEAD
    yield from columns(rows, head=head, right=range(kernel_table.LEFT, len(head)), indent=INDENT * 2)


def cells(value: Interval) -> tuple[str, str]:
    """Median and interval as two cells in the same unit."""
    median, _, bounds = interval(value).partition(" [")
    return median, f"[{bounds}"


def benchmark(b: BenchmarkResult, effort: Effort) -> Iterator[str]:
    """Everything about one case, including its rounds or the kernels that a call launches."""
    yield f"{INDENT}benchmark {visible(b.name)} ({parameters(b.params)})"
    yield from columns(list(_facts(b, effort)), indent=INDENT * 2, prose=True)
    if b.mode == "replayed":
        yield from kernels(b)
        return
    rounds = [
        (str(i), str(r.calls), duration(r.wall_ns), duration(round(r.call_ns(b.overhead_ns))))
        for i, r in enumerate(b.rounds, start=1)
    ]
    yield from columns(rounds, head=("round", "calls", "took", "a call"), right=range(4), indent=INDENT * 2)


def unfinished(result: Verdict, *, for_author: bool = False, profiled: bool = False) -> Iterator[str]:
    """The cases whose measurement was stopped early, with the reason and, unless `for_author`, what to do."""
    more = "" if for_author else _more(result.effort, profiled=profiled)
    names: dict[str, list[str]] = {}
    for b in result.benchmarks:
        if b.stop_reason != "converged":
            names.setdefault(_stopped(b, more), []).append(b.name)
    for text, cases in names.items():
        yield f"{_cases(cases, len(result.benchmarks))}: {text}"


def doubts(result: Verdict, *, for_author: bool = False, profiled: bool = False) -> Iterator[str]:
    """Reasons to trust the result less, each in one line with advice: on the whole run, then on cases.

    `for_author` leaves out advice for the person who grades; `profiled` is for `kernelmark profile`.
    """
    if result.score is not None and (reached := result.score.confidence) < _CONFIDENT:
        why = f"the intervals hold with {100 * reached:.0f} % confidence, not 95 %, as too few rounds were measured"
        yield f"few_rounds: {why}" + ("" if for_author else f"; {_more(result.effort, profiled=profiled)}")
    for doubt in result.doubts:
        yield f"{visible(doubt.code)}: {_with_advice(doubt, for_author)}"
    by_code: dict[str, list[tuple[str, Doubt]]] = {}
    for benchmark in result.benchmarks:
        for doubt in benchmark.doubts:
            by_code.setdefault(doubt.code, []).append((benchmark.name, doubt))
    for code, found in by_code.items():
        (name, first), *others = found
        where = _cases([case for case, _ in found], len(result.benchmarks))
        if any(doubt.text != first.text for _, doubt in others):
            where = f"{visible(name)}, and {counted(len(others), 'more case')} like it"
        yield f"{where}: {visible(code)}: {_with_advice(first, for_author)}"


def _with_advice(doubt: Doubt, for_author: bool) -> str:
    advice = doubt.for_author if for_author else doubt.advice
    return visible(doubt.text) + (f"; {advice}" if advice else "")


def _facts(b: BenchmarkResult, effort: Effort) -> Iterator[tuple[str, str]]:
    yield "score", f"{interval(b.score)}{_sure(b.score)}"
    yield from _clocks(b)
    yield "mode", _HOW[b.mode]
    yield "stopped", _stopped(b, _more(effort))
    for baseline in b.baselines:
        yield f"× {visible(baseline.name)}", f"{ratio(baseline.speedup)}{_sure(baseline.speedup)}, {_took(baseline)}"
    yield from ((metric.name, said) for metric in METRICS if (said := metric.sentence(b)))
    if telemetry := _telemetry(b):
        yield "device", telemetry
    for doubt in b.doubts:
        yield "doubt", f"{visible(doubt.code)}: {visible(doubt.text)}"


def _clocks(b: BenchmarkResult) -> Iterator[tuple[str, str]]:
    """The time of a call by each clock of a replay, or the overhead of a round, which is subtracted."""
    if b.mode == "replayed":
        by_cupti = [round(stats.quantile(b.calls.device_ns, share)) for share in (0.1, 0.5, 0.9)]
        by_events, by_host = (round(stats.median(times)) for times in (b.calls.event_ns, b.calls.span_ns))
        said = ", ".join(map(duration, by_cupti))
        yield "CUPTI", f"{said} (p10, median, p90), from the first kernel to the last, {len(b.calls.device_ns)} calls"
        more = f"for a kernel of our own, {duration(b.event_extra_ns)} more than CUPTI"
        yield "events", f"{duration(by_events)} in the median; {more}"
        more = f"for a kernel of our own, {duration(b.span_extra_ns)} more than the events"
        yield "host clock", f"{duration(by_host)} in the median; {more}"
        return
    error = "" if b.overhead_error_ns is None else f" ± {duration(b.overhead_error_ns)}"
    yield "overhead", f"{duration(b.overhead_ns)}{error} of a round"


def _took(baseline: PairedBaseline) -> str:
    count = f"{len(baseline.calls.device_ns)} calls" if baseline.calls else f"{len(baseline.rounds)} rounds"
    memory = "" if baseline.peak_bytes is None else f" and {size(baseline.peak_bytes)} of memory"
    return f"which took {duration(baseline.time_ns)}{memory} in {count}, sha256 {baseline.sha256[:12]}"


def _telemetry(b: BenchmarkResult) -> str:
    """The ranges of the sensor readings after each round or block, and why clocks were lowered."""
    seen = [reading for reading in b.telemetry if reading is not None]
    ranges = [
        ("SM", [t.sm_mhz for t in seen if t.sm_mhz is not None], "MHz"),
        ("memory", [t.memory_mhz for t in seen if t.memory_mhz is not None], "MHz"),
        ("power", [t.power_mw // 1000 for t in seen if t.power_mw is not None], "W"),
        ("temperature", [t.temperature_c for t in seen if t.temperature_c is not None], "°C"),
    ]
    said = [f"{name} {'–'.join(map(str, sorted({min(vs), max(vs)})))} {unit}" for name, vs, unit in ranges if vs]
    if throttled := [t.throttle for t in seen if t.throttle]:
        reasons = ", ".join(sorted({visible(reason) for reasons_of_one in throttled for reason in reasons_of_one}))
        said.append(f"throttled in {len(throttled)} of {len(seen)}: {reasons}")
    return ", ".join(said)


def _sure(value: Interval | Ratio) -> str:
    return f" at {100 * value.confidence:.3g} %"


def _more(effort: Effort, *, profiled: bool = False) -> str:
    """How to measure more than with this effort; `kernelmark profile` has no option for it."""
    return "grade again with `kernelmark bench`" if profiled else _MEASURE_MORE[effort]


def _stopped(b: BenchmarkResult, more: str) -> str:
    remedy = "" if b.stop_reason == "converged" else more
    if b.stop_reason == "unstable" and not remedy.endswith("machine"):
        remedy = remedy.replace("again", "again on a quiet machine or", 1)
    return _STOPPED[b.stop_reason] + (f"; {remedy}" if remedy else "")


def _cases(named: Sequence[str], cases: int) -> str:
    return "every case" if 1 < cases == len(named) else ", ".join(map(visible, named))
