"""The charts of a board: the record over time, and the roofline; and the colours and shapes that all of them share.

`cases` has the charts by case, `trace` those of a run. The page of a problem calls these; `plot` draws. Trusted; pure.
Every chart has a descriptive title for screen readers.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime
from typing import NamedTuple

from markupsafe import Markup

from harness.verdict import BenchmarkResult, Verdict
from harness.verdict.roofline import Calibration
from leaderboard.publishing.site import paths
from leaderboard.publishing.site.book import Bests
from leaderboard.publishing.site.charts.plot import (
    SHAPES,
    Axis,
    Note,
    PlotMark,
    Point,
    Series,
    logarithmic,
    plot,
    ratios,
)
from leaderboard.publishing.site.document import Board
from leaderboard.text.units import duration, percent
from leaderboard.text.visible import visible

_AUTHORS = 12  # the first authors of a board, whose personal bests are drawn
RUNS = 8  # the first rows of a board, whose cases are drawn under the roofline
COLOURS = 8  # the classes by1 to by8 of the stylesheet; further authors are grey
_DAY_S = 86_400.0
_EPOCH = date(1970, 1, 1).toordinal()


class LegendKey(NamedTuple):
    """One entry of a legend: a picture and its meaning."""

    picture: Markup
    name: str


class Palette:
    """The colours of a board's authors, in the order of their rows, and the shapes of its cases, which repeat."""

    def __init__(self, authors: Sequence[str], cases: Sequence[str]) -> None:
        coloured = list(dict.fromkeys(authors))[:COLOURS]
        self._styles = {author: f"by{number}" for number, author in enumerate(coloured, start=1)}
        self._cases = {name: number for number, name in enumerate(dict.fromkeys(cases))}

    def style(self, author: str) -> str:
        """A class of the stylesheet."""
        return self._styles.get(author, "faint")

    def case(self, name: str) -> int | None:
        """The number of a case, which is also that of its shape; None if it is not drawn."""
        return self._cases.get(name)

    def authors(self) -> list[LegendKey]:
        return [LegendKey(_picture(style, "m-5-2.5h10v5h-10z"), author) for author, style in self._styles.items()]

    def cases(self) -> list[LegendKey]:
        return [
            LegendKey(_picture("faint", SHAPES[number % len(SHAPES)]), name) for name, number in self._cases.items()
        ]


def _picture(style: str, path: str) -> Markup:
    return Markup(f'<svg class="key {style}" viewBox="-5 -5 10 10" aria-hidden="true"><path d="M0 0{path}"/></svg>')


class Figure(NamedTuple):
    """A plot with the sentence that stands below it."""

    picture: Markup
    caption: str


def records(board: Board, bests_of: Bests, palette: Palette, root: str) -> Figure | None:
    """The record as a step line, over the personal bests of the first authors; None if there is no record."""
    if not board.records:
        return None
    shown = [row.author for row in board.rows[:_AUTHORS]]
    bests = {author: bests_of[author] for author in shown if author in bests_of}
    moments = [at for best in bests.values() for at, _ in best] + [step.at for step in board.records]
    first, last = board.records[0], board.records[-1]
    now_ns = max(1, last.score_ns)
    over = [ns / now_ns for best in bests.values() for _, ns in best] + [s.score_ns / now_ns for s in board.records]
    x = _dates(moments)
    y = ratios(over, f"× the record of {duration(last.score_ns)}")
    series = [
        Series(f"best {palette.style(author)}", _steps([(at.timestamp(), ns / now_ns) for at, ns in best], x.high))
        for author, best in bests.items()
    ]
    held = [(step.at.timestamp(), step.score_ns / now_ns) for step in board.records]
    marks = [
        PlotMark(
            at,
            f"{visible(step.author)}, {step.at:%Y-%m-%d}: {duration(step.score_ns)}",
            f"{step.author} {duration(step.score_ns)}",
            root + paths.run(step.run),
            palette.style(step.author),
        )
        for at, step in zip(held, board.records, strict=True)
    ]
    title = (
        f"Record over time: from {duration(first.score_ns)} to {duration(last.score_ns)} in {len(board.records)} "
        f"steps; thin lines are the personal bests of the first {len(bests)} authors"
    )
    picture = plot(title, x, y, [*series, Series("record", _steps(held, x.high))], marks)
    return Figure(picture, "Record over time; thin lines: the personal bests of the first authors.")


class _Roofs(NamedTuple):
    """The limits of a device: bytes per second, and the names of the dtypes by their FLOP per second."""

    memory: float | None
    arithmetic: Mapping[float, str]


def roofline(
    runs: Sequence[Verdict], device: str, calibration: Calibration | None, dtypes: Mapping[str, str], palette: Palette,
    root: str,
) -> Figure | None:  # fmt: skip
    """FLOP per second over FLOP per byte, under a roof for each dtype; None if no case states its cost and a roof.

    `dtypes` has that of each case by its name; cases that the palette does not have are left out. Without a calibration
    the roofs follow from the shares in the verdicts.
    """
    marks = []
    for run in runs:
        author = run.submission.author
        for case in run.benchmarks:
            number = palette.case(case.name)
            if number is not None and case.minimum_bytes and case.minimum_flops and case.score.median_ns:
                rate = case.minimum_flops / case.score.median_ns * 1e9
                share = f", {percent(case.roofline.share)} of the roof" if case.roofline is not None else ""
                label = f"{visible(author)}, {visible(case.name)}: {_rate(rate)}{share}"
                at = (case.minimum_flops / case.minimum_bytes, rate)
                link = root + paths.run(run.run)
                short = f"{author} {_rate(rate)}"
                marks.append(PlotMark(at, label, short, link, palette.style(author), number, number))
    roofs = _roofs([case for run in runs for case in run.benchmarks], calibration, dtypes)
    if not marks or not (roofs.memory or roofs.arithmetic):
        return None
    intensities = [mark.at[0] for mark in marks]
    ridges = [rate / roofs.memory for rate in roofs.arithmetic] if roofs.memory else []
    low, high = min([*intensities, *ridges]) / 3, max([*intensities, *ridges]) * 3
    lines = list(_lines(roofs, low, high))
    x = logarithmic([low, high], lambda value: f"{value:g}", "FLOP per byte")
    rates = [mark.at[1] for mark in marks] + [at[1] for line in lines for at in line]
    y = logarithmic([*rates, 1.3 * max(rates)], _rate, "FLOP per second")  # with room for the highest roof's name
    title = f"Roofline of {visible(device)}: {len(marks)} cases of the first {len(runs)} rows"
    picture = plot(title, x, y, [Series("roof", line) for line in lines], marks, list(_names(roofs, x, y)), height=260)
    named = [f"memory {_rate(roofs.memory, 'B')}"] if roofs.memory else []
    named += [f"{name} {_rate(rate)}" for rate, name in roofs.arithmetic.items()]
    measured = f", calibrated {calibration.created_at:%Y-%m-%d}" if calibration else ", as its verdicts say"
    return Figure(picture, f"Roofline of {visible(device)}{measured}: {'; '.join(named)}.")


def _roofs(cases: Sequence[BenchmarkResult], calibration: Calibration | None, dtypes: Mapping[str, str]) -> _Roofs:
    memory, arithmetic = None, dict[str, float]()
    if calibration is not None:
        memory = float(calibration.copy_bytes_per_s)
        used = {dtypes[case.name] for case in cases if case.name in dtypes}
        arithmetic = {dtype: float(calibration.throughput(dtype)) for dtype in used}
    else:
        for case in cases:
            if case.roofline is not None and case.score.median_ns:
                seconds = case.score.median_ns / 1e9 * case.roofline.share
                if case.roofline.limit == "memory" and case.minimum_bytes:
                    memory = max(memory or 0.0, case.minimum_bytes / seconds)
                elif case.roofline.limit == "arithmetic" and case.minimum_flops:
                    dtype = dtypes.get(case.name, "arithmetic")
                    arithmetic[dtype] = max(arithmetic.get(dtype, 0.0), case.minimum_flops / seconds)
    rates = sorted(set(arithmetic.values()), reverse=True)
    return _Roofs(memory, {rate: ", ".join(sorted(d for d, r in arithmetic.items() if r == rate)) for rate in rates})


def _lines(roofs: _Roofs, low: float, high: float) -> Iterable[list[Point]]:
    """The roofs from `low` to `high` FLOP per byte: one that rises, of memory, and a level one for each dtype."""
    starts = {rate: max(low, rate / roofs.memory) if roofs.memory else low for rate in roofs.arithmetic}
    if roofs.memory:
        end = max(starts.values(), default=high)
        yield [(low, roofs.memory * low), (end, roofs.memory * end)]
    for rate, start in starts.items():
        yield [(start, rate), (high, rate)]


def _names(roofs: _Roofs, x: Axis, y: Axis) -> Iterable[Note]:
    """The names at the roofs' lines, where there is room; the caption has all of them."""
    before = math.inf
    for rate, name in roofs.arithmetic.items():
        if before - y.share(rate) > 0.08:
            yield Note((x.high, rate), f"{name} {_rate(rate)}", down=-4)
            before = y.share(rate)
    if roofs.memory:
        end = max(roofs.arithmetic, default=roofs.memory * x.high) / roofs.memory
        middle = x.low * (end / x.low) ** 0.85
        if x.share(middle) > 0.34:
            yield Note((middle, roofs.memory * middle), f"memory {_rate(roofs.memory, 'B')}", right=-8)


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
    last = date.max.toordinal()  # the end of the calendar; a label may be later
    ticks = [(day * _DAY_S, f"{date.fromordinal(min(_EPOCH + day, last)):%Y-%m-%d}") for day in days]
    return Axis(low * _DAY_S, (high + room) * _DAY_S, ticks)


def _rate(value: float, of: str = "FLOP") -> str:
    for unit, size in (("P", 1e15), ("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if value >= 0.9995 * size:  # what is less has at most 999 of the next smaller unit
            return f"{value / size:.3g} {unit}{of}/s"
    return f"{value:.3g} {of}/s"
