"""The charts of a run: the distribution of single calls, every round or call in order, and the sensors' readings.

`pages.run` calls these; `plot` draws. Trusted; pure. Every chart has a descriptive title for screen readers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from markupsafe import Markup

from harness import stats
from harness.verdict import BenchmarkResult, ReplayedBenchmark
from leaderboard.publishing.site.charts.plot import Axis, Point, Series, linear, plot
from leaderboard.text.units import apart, duration
from leaderboard.text.visible import shortened

_BINS = 24
_WIDE = 720
_LETTERS = 105  # characters of labels that fit below a wide plot
_DOTS, _POINTS = 400, 1500  # limits for a line, which keep a page below 300 KB


def samples(benchmark: ReplayedBenchmark) -> Markup:
    """The distribution of single calls by CUPTI."""
    values = sorted(benchmark.calls.device_ns)
    median = round(stats.median(values))
    low, most = values[0], values[int(0.9 * (len(values) - 1))]
    high = min(values[-1], low + 2 * (most - low) or values[-1])  # one slow call would squeeze all others into one bar
    bins = min(_BINS, max(5, math.isqrt(len(values))))
    width = max(1.0, (high - low) / bins)
    counts = [0] * (bins + (values[-1] > high))
    for value in values:
        counts[-1 if value > high else min(bins - 1, int((value - low) / width))] += 1
    points: list[Point] = [(float(low), 0.0)]
    for index, count in enumerate(counts):
        points += [(low + index * width, float(count)), (low + (index + 1) * width, float(count))]
    points.append((low + len(counts) * width, 0.0))
    x = linear([p[0] for p in points], apart, "one call, by CUPTI")
    y = linear([p[1] for p in points], _number, zero=True)
    mark: list[Point | None] = [(float(median), 0.0), (float(median), float(max(counts)))]
    slow = sum(value > high for value in values)
    beyond = f"; the last bar stands for the {slow} slowest, up to {duration(values[-1])}" if slow else ""
    title = f"Distribution of {len(values)} calls by CUPTI around {duration(median)}{beyond}"
    return plot(title, x, y, [Series("area", points), Series("mark", mark)], width=360, height=170)


def over_time(benchmarks: Sequence[BenchmarkResult]) -> Markup:
    """Every round of a grading by the judge's clock, or every call by two clocks, in percent of its case's median."""
    first, second = list[Point | None](), list[Point | None]()
    number = sum(map(_length, benchmarks))
    every, start = -(-number // _POINTS), 1
    values: list[float] = []
    for b in benchmarks:
        for line, shares in zip((first, second), _shares(b), strict=False):
            line += [(float(start + at), share) for at, share in enumerate(shares) if at % every == 0]
            line.append(None)
            values += shares
        start += _length(b)
    what, clocks, median = "rounds", "per call by the judge's clock", "the median of its case"
    if any(b.mode == "replayed" for b in benchmarks):
        what, clocks, median = "calls", "by CUPTI and by events", "the median of its case by CUPTI"
    drawn = f"; one in {every} is drawn" if every > 1 else ""
    title = (
        f"{number} {what} of {len(benchmarks)} cases in their order: time {clocks}, "
        f"{min(values):.1f} to {max(values):.1f} % of {median}{drawn}"
    )
    dots = number <= _DOTS
    series = [Series(name, line[:-1], dots=dots) for name, line in (("second", second), ("main", first)) if line]
    return plot(title, _by_case(benchmarks), linear(values, _percent), series, width=_WIDE, height=190)


def sensors(benchmarks: Sequence[BenchmarkResult]) -> list[tuple[str, Markup]]:
    """The clock, temperature and power after each round or block of calls, where they are known."""
    readings, start = [], 0
    for b in benchmarks:
        apiece = _length(b) / max(1, len(b.telemetry))
        read = enumerate(b.telemetry, start=1)
        readings += [(start + at * apiece, reading) for at, reading in read if reading is not None]
        start += _length(b)
    curves: list[tuple[str, str, list[Point]]] = [
        ("SM clock", "MHz", [(at, float(t.sm_mhz)) for at, t in readings if t.sm_mhz is not None]),
        ("temperature", "°C", [(at, float(t.temperature_c)) for at, t in readings if t.temperature_c is not None]),
        ("power", "W", [(at, t.power_mw / 1000) for at, t in readings if t.power_mw is not None]),
    ]
    x = _by_case(benchmarks)
    after = "blocks" if any(b.mode == "replayed" for b in benchmarks) else "rounds"
    return [
        (f"{name}, {unit}", _sensor(name, unit, x, points, after))
        for name, unit, points in curves
        if len({value for _, value in points}) > 1
    ]


def _shares(b: BenchmarkResult) -> list[list[float]]:
    """The times of a case's rounds, or of its calls by CUPTI and by events, in percent of the median of the first."""
    if b.mode == "replayed":
        clocks: list[list[float]] = [list(b.calls.device_ns), list(b.calls.event_ns)]
    else:
        clocks = [[timed.call_ns(b.overhead_ns) for timed in b.rounds]]
    median = stats.median(clocks[0]) or 1
    return [[100 * ns / median for ns in times] for times in clocks]


def _length(b: BenchmarkResult) -> int:
    """The number of rounds or calls of a case."""
    return len(b.calls.device_ns) if b.mode == "replayed" else len(b.rounds)


def _sensor(name: str, unit: str, x: Axis, points: list[Point], after: str) -> Markup:
    values = [value for _, value in points]
    title = f"{name}: {min(values):g} to {max(values):g} {unit} over {len(points)} {after}"
    y = linear(values, lambda value, step: f"{number} {unit}" if (number := _number(value, step)) else "")
    return plot(title, x, y, [Series("main", points)], width=_WIDE, height=120)


def _by_case(benchmarks: Sequence[BenchmarkResult]) -> Axis:
    """An axis of rounds or calls, numbered through the grading and labelled with their cases."""
    ticks, number = [], 0
    letters = _LETTERS / max(1, sum(map(_length, benchmarks)))
    for b in benchmarks:
        room = max(6, int(letters * _length(b)) - 1)
        # The middle of a long name is left out: names of cases with the same dtype differ at the end.
        ticks.append((number + (_length(b) + 1) / 2, shortened(b.name, room, (room - 1) * 2 // 3)))
        number += _length(b)
    return Axis(0.5, number + 0.5, ticks[:: -(-len(ticks) // 7)])


def _percent(value: float, step: float) -> str:
    return f"{value:.{max(0, -math.floor(math.log10(step)))}f} %"


def _number(value: float, step: float) -> str:
    if value == int(value):
        return f"{value:,.0f}"
    return f"{value:g}" if step < 1 else ""
