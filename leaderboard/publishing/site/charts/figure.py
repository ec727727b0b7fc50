"""The charts of a board: records over time, the roofline, and its cases. `trace` has those of a run.

Pages call these; `plot` draws. Trusted; pure. Every chart has a title for screen readers that says what it shows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from markupsafe import Markup

from leaderboard.publishing.site import paths
from leaderboard.publishing.site.charts.plot import Axis, Point, Series, linear, logarithmic, plot
from leaderboard.publishing.site.digest import Board, Run, TimedCase, moment
from leaderboard.text.units import apart, duration
from leaderboard.text.visible import visible

_AUTHORS = 12  # the first authors of a board, whose personal bests are drawn
_ROWS = 10
_DAY_S = 86_400.0


def records(board: Board, root: str) -> Markup | None:
    """The record as a step line, over the personal bests of the first authors; None if there is no record."""
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
    links = [root + paths.run(step.run) for step in board.records]
    series += [
        Series("main", _steps(held, end)),
        Series("main", held, line=False, dots=True, labels=labels, links=links),
    ]
    first, last = board.records[0], board.records[-1]
    title = (
        f"Record over time: from {duration(first.score_ns)} to {duration(last.score_ns)} in {len(board.records)} "
        f"steps; faint lines are the personal bests of the first {len(bests)} authors"
    )
    return plot(title, x, y, series)


def roofline(runs: Sequence[Run], root: str) -> Markup | None:
    """FLOP per second over FLOP per byte, with the device's roofline; None if no case states both."""
    dots: list[tuple[Point, str, str]] = []
    roofs: dict[str, float] = {}
    for run in runs[:5]:
        for case in run.cases:
            rates = _rates(case)
            if rates is None:
                continue
            (intensity, rate), limit, peak = rates
            roofs[limit] = max(peak, roofs.get(limit, 0.0))
            dots.append(
                ((intensity, rate), f"{visible(run.author)}, {case.name}: {_rate(rate)}", root + paths.run(run.run))
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
    """For each case, a small plot of the first rows: the median as a dot, the interval as a line."""
    runs = runs[:_ROWS]
    names = [case.name for case in runs[0].cases] if runs else []
    return [
        (name, _case(name, [(run, c) for run in runs for c in run.cases if c.name == name], root)) for name in names
    ]


def _case(name: str, results: Sequence[tuple[Run, TimedCase]], root: str) -> Markup:
    height = len(results)
    dots, bars, labels, links = [], list[Point | None](), [], []
    for index, (run, case) in enumerate(results):
        line, score = float(height - index), case.score
        dots.append((float(score.median_ns), line))
        bars += [(float(score.low_ns), line), (float(score.high_ns), line), None]
        labels.append(f"{visible(run.author)}: {duration(score.median_ns)}")
        links.append(root + paths.run(run.run))
    spread = [ns for _, case in results for ns in (case.score.low_ns, case.score.high_ns) if ns > 0]
    wide = bool(spread) and max(spread) > 8 * min(spread)
    values = list(map(float, spread))
    x = logarithmic(values, _time) if wide else linear(values, apart)
    ticks = [(float(height - index), _short(run.author)) for index, (run, _) in enumerate(results)]
    y = Axis(0.4, height + 0.6, ticks)
    title = f"{visible(name)}: time per call of the first {height} rows, with intervals"
    series = [Series("main", bars[:-1]), Series("main", dots, line=False, dots=True, labels=labels, links=links)]
    return plot(title, x, y, series, width=340, height=44 + 16 * height)


def _short(name: str) -> str:
    shown = visible(name[:15])
    return shown if len(shown) <= 14 else f"{shown[:13]}…"


def _rates(case: TimedCase) -> tuple[Point, str, float] | None:
    """A case's point (FLOP per byte, FLOP/s), its limit, and the rate of that limit (bytes or FLOP per second)."""
    if case.roofline is None or not case.minimum_bytes or not case.minimum_flops or not case.score.median_ns:
        return None
    seconds = case.score.median_ns / 1e9
    work = case.minimum_bytes if case.roofline.limit == "memory" else case.minimum_flops
    point = (case.minimum_flops / case.minimum_bytes, case.minimum_flops / seconds)
    return point, case.roofline.limit, work / seconds / case.roofline.share


def _roof(roofs: Mapping[str, float], low: float, high: float) -> list[Point]:
    """The roofline from `low` to `high` FLOP per byte: limited by memory first, then by arithmetic."""
    memory, arithmetic = roofs.get("memory"), roofs.get("arithmetic")
    if memory is None:
        return [(low, arithmetic or 1.0), (high, arithmetic or 1.0)]
    if arithmetic is None or not low < arithmetic / memory < high:
        return [(at, min(memory * at, arithmetic or memory * at)) for at in (low, high)]
    return [(low, memory * low), (arithmetic / memory, arithmetic), (high, arithmetic)]


def _steps(points: Iterable[Point], end: float) -> list[Point | None]:
    """A step line: each value is kept until the next point, and the last one until `end`."""
    steps: list[Point | None] = []
    height = None
    for at, value in points:
        if height is not None:
            steps.append((at, height))
        steps.append((at, value))
        height = value
    if height is not None:
        steps.append((end, height))
    return steps


def _dates(moments: Sequence[datetime]) -> Axis:
    """An axis of whole days, from midnight to midnight (UTC), with at most five labels, each at a midnight."""
    low = min(moments).timestamp() // _DAY_S
    high = max(moments).timestamp() // _DAY_S + 1
    step = max(1, -(-int(high - low) // 4))
    days = range(int(low), int(high) + 1, step)
    room = 0.1 * (high - low)  # for the last label
    return Axis(
        low * _DAY_S, (high + room) * _DAY_S, [(day * _DAY_S, f"{moment(day * _DAY_S):%Y-%m-%d}") for day in days]
    )


def _time(ns: float) -> str:
    return duration(max(0, round(ns)))


def _rate(value: float) -> str:
    for unit, size in (("P", 1e15), ("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if value >= size:
            return f"{value / size:.3g} {unit}/s"
    return f"{value:.3g}/s"
