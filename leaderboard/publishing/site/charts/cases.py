"""The charts of a board's cases: all of them as multiples of the fastest time, and each with bars from zero.

The page of a problem calls these; `plot` draws. Trusted; pure. Every chart has a title for screen readers.
"""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from harness.verdict import Interval
from leaderboard.publishing.site import paths
from leaderboard.publishing.site.boards import CaseTimes
from leaderboard.publishing.site.charts.figure import Figure, Palette
from leaderboard.publishing.site.charts.plot import Axis, Note, PlotMark, Point, Series, linear, plot, ratios
from leaderboard.text.units import apart, duration, interval
from leaderboard.text.visible import shortened, visible

_LETTERS = 20  # of a case's name next to the overview
_TEXT = 88  # pixels for the numbers next to a bar


def overview(names: Sequence[str], rows: Sequence[CaseTimes], palette: Palette, root: str) -> Figure | None:
    """Every case in a line of its own, with times as multiples of the fastest; None if there are not two rows."""
    authors = [row for row in rows if not row.baseline]
    if len(authors) < 2:
        return None
    marks = []
    for number, name in enumerate(names):
        best_ns = _best_ns(rows, number)
        for row in authors:
            score = row.times[number]
            if score is not None:
                at = (score.median_ns / best_ns, float(len(names) - number))
                label, link = _said(row, name, score, best_ns), root + paths.run(row.run)
                short = f"{row.name} {duration(score.median_ns)}"
                marks.append(
                    PlotMark(at, label, short, link, palette.style(row.author), palette.case(name) or 0, number)
                )
    if not marks:
        return None
    x = ratios([mark.at[0] for mark in marks], "time per call, × the fastest of the case")
    ticks = [
        (float(len(names) - number), shortened(name, _LETTERS, _LETTERS // 2)) for number, name in enumerate(names)
    ]
    title = f"{len(names)} cases: times of the first {len(authors)} rows, as multiples of the fastest of each case"
    y = Axis(0.4, len(names) + 0.6, ticks)
    picture = plot(title, x, y, [], marks, height=60 + max(16 * len(names), 60))
    return Figure(picture, "The cases of the first rows: time per call as a multiple of the fastest.")


def case(number: int, name: str, rows: Sequence[CaseTimes], palette: Palette, root: str) -> Markup:
    """One case: bars from zero for the authors and then the baselines, each with its interval."""
    timed = [(row, score) for row in rows if (score := row.times[number]) is not None]
    best_ns, height = _best_ns(rows, number), len(timed)
    x = linear([float(score.high_ns) for _, score in timed], _time, zero=True)
    marks, intervals, notes, ticks = [], list[Point | None](), [], []
    for index, (row, score) in enumerate(timed):
        at = (float(score.median_ns), float(height - index))
        style = "baseline" if row.baseline else palette.style(row.author)
        label, link = _said(row, name, score, best_ns), root + paths.run(row.run)
        marks.append(PlotMark(at, label, "", link, style, start=0.0))
        if score.low_ns < score.high_ns:
            intervals += [(float(score.low_ns), at[1]), (float(score.high_ns), at[1]), None]
        multiple = f"{score.median_ns / best_ns:.2f} ×"
        notes.append(Note((x.high, at[1]), f"{duration(score.median_ns)}, {multiple}", _TEXT + 8, 3.5))
        ticks.append((at[1], shortened(f"baseline {row.name}" if row.baseline else row.name, 18, 10)))
    title = f"{visible(name)}: time per call of the first {height} rows and baselines, with intervals, from zero"
    y = Axis(0.4, height + 0.6, ticks)
    series = [Series("interval", intervals[:-1])]
    return plot(title, x, y, series, marks, notes, width=400, height=34 + 17 * height, right=_TEXT)


def _best_ns(rows: Sequence[CaseTimes], number: int) -> int:
    """The fastest time of the authors in a case; baselines do not count, since they have no rank."""
    return max(
        1, min((score.median_ns for row in rows if not row.baseline and (score := row.times[number])), default=1)
    )


def _said(row: CaseTimes, name: str, score: Interval, best_ns: int) -> str:
    time = interval(score) if score.low_ns < score.high_ns else duration(score.median_ns)
    return f"{visible(row.name)}, {visible(name)}: {time}, {score.median_ns / best_ns:.3f} × the fastest"


def _time(ns: float, step: float) -> str:
    return apart(ns, step) if ns else "0"
