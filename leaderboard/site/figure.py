"""What is drawn on a page: records over time, the roofline, the cases of a board, one case's samples and rounds.

Pages ask for these; `plot` draws. Trusted; pure. Each says in its title what it shows, for who cannot see it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from markupsafe import Markup

from harness.verdict import BenchmarkResult
from leaderboard.site import place
from leaderboard.site.book import Board, Case, Run, moment
from leaderboard.site.plot import Axis, Point, Series, linear, logarithmic, plot
from leaderboard.units import duration
from leaderboard.visible import visible

_AUTHORS = 12  # whose own bests are drawn, the best of a board
_ROWS = 10
_BINS = 24
_WIDE = 720
_LETTERS = 105  # of labels that have room below a wide plot


def records(board: Board, root: str) -> Markup | None:
    """The record as a step line over the best times of each author; None before there are two days to show."""
    if not board.records:
        return None
    shown = [row.author for row in board.table.rows[:_AUTHORS]]
    bests = {author: board.bests[author] for author in shown if author in board.bests}
    moments = [at for best in bests.values() for at, _ in best] + [step.at for step in board.records]
    times = [ns for best in bests.values() for _, ns in best] + [step.score_ns for step in board.records]
    x = _dates(moments)
    end = x.high
    y = logarithmic(map(float, times), _time, "time per call")
    series = [Series("faint", _steps([(at.timestamp(), float(ns)) for at, ns in best], end)) for best in bests.values()]
    held = [(step.at.timestamp(), float(step.score_ns)) for step in board.records]
    labels = [f"{visible(s.author)}: {duration(s.score_ns)}" for s in board.records]
    links = [root + place.run(step.run) for step in board.records]
    series += [
        Series("main", _steps(held, end)),
        Series("main", held, line=False, dots=True, labels=labels, links=links),
    ]
    first, last = board.records[0], board.records[-1]
    title = (
        f"Record over time: from {duration(first.score_ns)} to {duration(last.score_ns)} in {len(board.records)} "
        f"steps; faint lines are the own bests of the first {len(bests)} authors"
    )
    return plot(title, x, y, series)


def roofline(runs: Sequence[Run], root: str) -> Markup | None:
    """Work per byte against work per second, with what the device allows; None where no case states both."""
    dots: list[tuple[Point, str, str]] = []
    roofs: dict[str, float] = {}
    for run in runs[:5]:
        for case in run.cases:
            found = _rates(case)
            if found is None:
                continue
            (intensity, rate), limit, peak = found
            roofs[limit] = max(peak, roofs.get(limit, 0.0))
            dots.append(
                ((intensity, rate), f"{visible(run.author)}, {case.name}: {_rate(rate)}", root + place.run(run.run))
            )
    if not dots:
        return None
    intensities = [point[0] for point, _, _ in dots]
    low, high = min(intensities) / 4, max(intensities) * 4
    roof = _roof(roofs, low, high)
    x = logarithmic([low, high], lambda value: f"{value:g}", "FLOP per byte")
    y = logarithmic([p[1] for p, _, _ in dots] + [p[1] for p in roof], _rate, "FLOP per second")
    series = [
        Series("roof", roof),
        Series(
            "main",
            [p for p, _, _ in dots],
            line=False,
            dots=True,
            labels=[d[1] for d in dots],
            links=[d[2] for d in dots],
        ),
    ]
    title = f"Roofline: {len(dots)} cases of the first {min(5, len(runs))} rows, under what the device allows"
    return plot(title, x, y, series)


def cases(runs: Sequence[Run], root: str) -> list[tuple[str, Markup]]:
    """For each case a small plot of the first rows: the median as a dot, the interval as a line."""
    runs = runs[:_ROWS]
    names = [case.name for case in runs[0].cases] if runs else []
    return [
        (name, _case(name, [(run, c) for run in runs for c in run.cases if c.name == name], root)) for name in names
    ]


def samples(benchmark: BenchmarkResult) -> Markup:
    """How the single cold calls are distributed, as the runner claims them."""
    claimed = benchmark.claimed_latency
    values = sorted(claimed.claimed_samples_ns)
    low, most = values[0], values[int(0.9 * (len(values) - 1))]
    high = min(values[-1], low + 2 * (most - low) or values[-1])  # one slow call would leave all others in one bar
    bins = min(_BINS, max(5, math.isqrt(len(values))))
    width = max(1.0, (high - low) / bins)
    counts = [0] * (bins + (values[-1] > high))
    for value in values:
        counts[-1 if value > high else min(bins - 1, int((value - low) / width))] += 1
    points: list[Point] = [(float(low), 0.0)]
    for index, count in enumerate(counts):
        points += [(low + index * width, float(count)), (low + (index + 1) * width, float(count))]
    points.append((low + len(counts) * width, 0.0))
    x = linear([p[0] for p in points], _apart, "one cold call, claimed")
    y = linear([p[1] for p in points], _number, zero=True)
    median = claimed.claimed_median_ns
    mark: list[Point | None] = [(float(median), 0.0), (float(median), float(max(counts)))]
    slow = sum(value > high for value in values)
    beyond = f"; the last bar stands for the {slow} slowest, up to {duration(values[-1])}" if slow else ""
    title = f"Distribution of {len(values)} cold calls around {duration(median)}{beyond}"
    return plot(title, x, y, [Series("area", points), Series("mark", mark)], width=360, height=170)


def rounds(benchmarks: Sequence[BenchmarkResult]) -> Markup:
    """Every round of a grading in its order: the time per call by both clocks, in percent of its case's median."""
    claimed, sealed = list[Point | None](), list[Point | None]()
    number = 0
    for b in benchmarks:
        median = b.claimed_ns or b.sealed_ns or 1
        for r in b.rounds:
            number += 1
            claimed.append((float(number), 100 * r.claimed_ns / r.calls / median))
            sealed.append((float(number), 100 * max(0, r.wall_ns - b.overhead_ns) / r.calls / median))
        claimed.append(None)
        sealed.append(None)
    values = [point[1] for point in claimed + sealed if point is not None]
    y = linear(values, _percent)
    title = (
        f"{number} sealed rounds of {len(benchmarks)} cases in their order: time per call by both clocks, "
        f"{min(values):.1f} to {max(values):.1f} % of the median that is claimed for its case"
    )
    series = [Series("second", sealed[:-1], dots=True), Series("main", claimed[:-1], dots=True)]
    return plot(title, _by_case(benchmarks), y, series, width=_WIDE, height=190)


def sensors(benchmarks: Sequence[BenchmarkResult]) -> list[tuple[str, Markup]]:
    """The clock, the temperature and the power after each of the same rounds, where the driver told them."""
    read = [r.telemetry for b in benchmarks for r in b.rounds]
    told = [(float(number), each) for number, each in enumerate(read, start=1) if each is not None]
    found: list[tuple[str, str, list[Point]]] = [
        ("SM clock", "MHz", [(at, float(t.sm_mhz)) for at, t in told if t.sm_mhz is not None]),
        ("temperature", "°C", [(at, float(t.temperature_c)) for at, t in told if t.temperature_c is not None]),
        ("power", "W", [(at, t.power_mw / 1000) for at, t in told if t.power_mw is not None]),
    ]
    x = _by_case(benchmarks)
    return [
        (f"{name}, {unit}", _sensor(name, unit, x, points))
        for name, unit, points in found
        if len({value for _, value in points}) > 1
    ]


def _sensor(name: str, unit: str, x: Axis, points: list[Point]) -> Markup:
    values = [value for _, value in points]
    title = f"{name}: {min(values):g} to {max(values):g} {unit} over {len(points)} rounds"
    return plot(
        title,
        x,
        linear(values, lambda value, step: _measured(value, step, unit)),
        [Series("main", points)],
        width=_WIDE,
        height=120,
    )


def _by_case(benchmarks: Sequence[BenchmarkResult]) -> Axis:
    """Rounds by their number in the grading, labelled with the cases that they belong to."""
    ticks, number = [], 0
    letters = _LETTERS / max(1, sum(len(b.rounds) for b in benchmarks))
    for b in benchmarks:
        ticks.append((number + (len(b.rounds) + 1) / 2, _shortened(b.name, max(6, int(letters * len(b.rounds)) - 1))))
        number += len(b.rounds)
    return Axis(0.5, number + 0.5, ticks[:: -(-len(ticks) // 7)])


def _case(name: str, found: Sequence[tuple[Run, Case]], root: str) -> Markup:
    height = len(found)
    dots, bars, labels, links = [], list[Point | None](), [], []
    for index, (run, case) in enumerate(found):
        line, score = float(height - index), case.score
        dots.append((float(score.median_ns), line))
        bars += [(float(score.low_ns), line), (float(score.high_ns), line), None]
        labels.append(f"{visible(run.author)}: {duration(score.median_ns)}")
        links.append(root + place.run(run.run))
    spread = [ns for _, case in found for ns in (case.score.low_ns, case.score.high_ns) if ns > 0]
    wide = bool(spread) and max(spread) > 8 * min(spread)
    values = list(map(float, spread))
    x = logarithmic(values, _time) if wide else linear(values, _apart)
    ticks = [(float(height - index), _short(run.author)) for index, (run, _) in enumerate(found)]
    y = Axis(0.4, height + 0.6, ticks)
    title = f"{visible(name)}: time per call of the first {height} rows, with intervals"
    series = [Series("main", bars[:-1]), Series("main", dots, line=False, dots=True, labels=labels, links=links)]
    return plot(title, x, y, series, width=340, height=44 + 16 * height)


def _short(name: str) -> str:
    shown = visible(name[:15])
    return shown if len(shown) <= 14 else f"{shown[:13]}…"


def _shortened(name: str, length: int) -> str:
    """A case's name without its middle where it is too long: cases of one dtype are told apart by how they end."""
    shown = visible(name)
    if len(shown) <= length:
        return shown
    tail = (length - 1) * 2 // 3
    return f"{shown[: length - 1 - tail].rstrip()}…{shown[-tail:].lstrip()}"


def _rates(case: Case) -> tuple[Point, str, float] | None:
    """Intensity and rate of a case, which limit it has, and the rate (bytes or operations a second) of that limit."""
    if case.roofline is None or not case.minimum_bytes or not case.minimum_flops or not case.score.median_ns:
        return None
    seconds = case.score.median_ns / 1e9
    work = case.minimum_bytes if case.roofline.limit == "memory" else case.minimum_flops
    point = (case.minimum_flops / case.minimum_bytes, case.minimum_flops / seconds)
    return point, case.roofline.limit, work / seconds / case.roofline.share


def _roof(roofs: Mapping[str, float], low: float, high: float) -> list[Point]:
    """The roof's line from `low` to `high` operations a byte: what memory allows, up to what arithmetic does."""
    memory, arithmetic = roofs.get("memory"), roofs.get("arithmetic")
    if memory is None:
        return [(low, arithmetic or 1.0), (high, arithmetic or 1.0)]
    if arithmetic is None or not low < arithmetic / memory < high:
        return [(at, min(memory * at, arithmetic or memory * at)) for at in (low, high)]
    return [(low, memory * low), (arithmetic / memory, arithmetic), (high, arithmetic)]


def _steps(points: Iterable[Point], end: float) -> list[Point | None]:
    """A line that keeps its height until the next point, and after the last until `end`."""
    found: list[Point | None] = []
    height = None
    for at, value in points:
        if height is not None:
            found.append((at, height))
        found.append((at, value))
        height = value
    if height is not None:
        found.append((end, height))
    return found


def _dates(moments: Sequence[datetime]) -> Axis:
    """Time, with at most five dates at its foot."""
    low, high = min(moments).timestamp(), max(moments).timestamp()
    room = (high - low) * 0.04 or 3600.0
    low, high = low - room, high + room
    form = "%Y-%m-%d" if high - low > 6 * 86_400 else "%m-%d %H:%M" if high - low > 600 else "%H:%M:%S"
    places = [low + (high - low) * share for share in (0.04, 0.35, 0.66, 0.95)]
    ticks = [(at, f"{moment(at):{form}}") for at in places]
    told = {"%m-%d %H:%M": "UTC", "%H:%M:%S": f"{moment(low):%Y-%m-%d}, UTC"}
    return Axis(low, high, ticks, told.get(form, ""))


def _time(ns: float) -> str:
    return duration(max(0, round(ns)))


def _apart(ns: float, step: float) -> str:
    """A time with the decimals that tell it from the next label."""
    unit, exponent = next(((u, e) for u, e in (("s", 9), ("ms", 6), ("µs", 3)) if ns >= 10**e), ("ns", 0))
    decimals = max(0, exponent - math.floor(math.log10(step)))
    return f"{ns / 10**exponent:.{decimals}f} {unit}"


def _percent(value: float, step: float) -> str:
    return f"{value:.{max(0, -math.floor(math.log10(step)))}f} %"


def _number(value: float, step: float) -> str:
    if value == int(value):
        return f"{value:,.0f}"
    return f"{value:g}" if step < 1 else ""


def _measured(value: float, step: float, unit: str) -> str:
    number = _number(value, step)
    return f"{number} {unit}" if number else ""


def _rate(value: float) -> str:
    for unit, size in (("P", 1e15), ("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if value >= size:
            return f"{value / size:.3g} {unit}/s"
    return f"{value:.3g}/s"
