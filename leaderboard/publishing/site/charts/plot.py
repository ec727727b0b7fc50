"""A plot as inline SVG: axes with guides and labels, lines, bars, and marks that have a label and may be links.

The other modules of this package and the front page call it. Trusted; the names in it are hostile, and
`_element` and `_text` escape them. The SVG has no script, style, identifier or date, so that equal data give equal
bytes; the stylesheet colours it by class. Without JavaScript a pointer brings up a mark's label; `plots.js` shows it to
the keyboard too. No library does all of that. Drawing a plot takes 0.9 ms here, with Observable Plot 7, with ECharts 26
and with Vega-Lite 63, and they add Node, or 84 MB, to a build.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import groupby

from markupsafe import Markup

from leaderboard.text.visible import visible

Point = tuple[float, float]

# Pixels. The stylesheet sets text in 10 pixels; how wide a label is depends on the reader's font, and is estimated.
_LETTER = 6
_TOP, _RIGHT, _BOTTOM, _LEFT = 6, 12, 22, 10  # margins; on the left the labels' width is added
_INSET = 8  # from the ends of the horizontal axis, for the first and the last dot
_X_TITLE, _Y_TITLE = 19, 16  # added to the bottom and to the left where the axis has a title
_BAR = 9  # how wide a bar is

# Of marks, as paths around their place; they look about equally large.
SHAPES = (
    "m-3 0a3 3 0 1 0 6 0a3 3 0 1 0-6 0z",
    "m-2.7-2.7h5.4v5.4h-5.4z",
    "m0-3.9l3.9 3.9-3.9 3.9-3.9-3.9z",
    "m0-3.7l3.6 6.2h-7.2z",
    "m0 3.7l3.6-6.2h-7.2z",
    "m-1.2-3.6h2.4v2.4h2.4v2.4h-2.4v2.4h-2.4v-2.4h-2.4v-2.4h2.4z",
    "m-3.7 0l6.2 3.6v-7.2z",
    "m3.7 0l-6.2 3.6v-7.2z",
)


@dataclass(frozen=True)
class Series:
    """Points as a line, which None breaks, with or without dots; `style` is a class of the stylesheet."""

    style: str
    points: Sequence[Point | None]
    dots: bool = False


@dataclass(frozen=True)
class PlotMark:
    """A point with a label, as one of `SHAPES`; a bar, if it has the place where that begins.

    `style` is a class of the stylesheet, `short` the label next to it in the enlarged plot, and `case` the number of
    its case, by which readers can choose.
    """

    at: Point
    label: str
    short: str = ""
    link: str = ""
    style: str = "main"
    shape: int = 0
    case: int | None = None
    start: float | None = None


@dataclass(frozen=True)
class Note:
    """A short text in the plot, which ends `right` and `down` pixels from a point."""

    at: Point
    text: str
    right: float = 0
    down: float = 0


@dataclass(frozen=True)
class Axis:
    """From `low` to `high`, with labels at `ticks`; the values and labels of a `log` axis are plain numbers."""

    low: float
    high: float
    ticks: Sequence[tuple[float, str]]
    title: str = ""
    log: bool = False

    def share(self, value: float) -> float:
        """The part of the axis that is below a value: 0 at `low`, 1 at `high`."""
        return self.scale(0.0, 1.0)(value)

    def scale(self, first: float, last: float) -> Callable[[float], float]:
        """The function from a value to its pixel, where `low` is at `first` and `high` at `last`."""
        low = self.low
        if self.log:  # a log axis has no zero, which the lower bound of a short time may be
            apiece = (last - first) / math.log(self.high / low)
            return lambda value: first + apiece * math.log(max(value, low) / low)
        apiece = (last - first) / (self.high - low)
        return lambda value: first + apiece * (value - low)


class _PlotArea:
    """Two axes, and the rectangle that they span: pixels from the upper left corner of the plot."""

    def __init__(self, x: Axis, y: Axis, left: float, right: float, top: float, bottom: float) -> None:
        self.x, self.y, self.left, self.right, self.top, self.bottom = x, y, left, right, top, bottom
        self.column, self.row = x.scale(left + _INSET, right - _INSET), y.scale(bottom, top)

    def path(self, points: Iterable[Point]) -> str:
        """The points as the coordinates of an SVG path: `x y x y`."""
        column, row = self.column, self.row
        places = "".join([f"{column(x):.1f} {row(y):.1f} " for x, y in points])
        return places.replace(".0 ", " ").rstrip()


def plot(
    title: str,
    x: Axis,
    y: Axis,
    series: Sequence[Series],
    marks: Sequence[PlotMark] = (),
    notes: Sequence[Note] = (),
    *,
    width: int = 460,
    height: int = 220,
    right: int = 0,
) -> Markup:
    """Draw a plot; a screen reader reads `title`, and `right` is room for notes next to the axes."""
    left = _LEFT + _LETTER * max((len(label) for _, label in y.ticks), default=0) + (_Y_TITLE if y.title else 0)
    bottom = height - _BOTTOM - (_X_TITLE if x.title else 0)
    area = _PlotArea(x, y, left, width - _RIGHT - right, _TOP, bottom)
    drawn = [
        _element("title", {}, _text(title)),
        *_draw_x(area),
        *_draw_y(area),
        *(_draw_mark(area, mark) for mark in marks if mark.start is not None),
        *(_draw_series(area, line) for line in series),
        *(_draw_mark(area, mark) for mark in marks if mark.start is None),
    ]
    for note in notes:
        text = _written(note.text, area.column(note.at[0]) + note.right, area.row(note.at[1]) + note.down)
        drawn.append(_element("g", {"class": "note"}, text))
    attributes = {
        "xmlns": "http://www.w3.org/2000/svg",
        "class": "plot",
        "viewBox": f"0 0 {width} {height}",
        "width": str(width),
        "height": str(height),
        "role": "group" if any(mark.link for mark in marks) else "img",
    }
    return Markup(_element("svg", attributes, "".join(drawn)))


def linear(values: Iterable[float], say: Callable[[float, float], str], title: str = "", *, zero: bool = False) -> Axis:
    """An axis around these values, labelled at round numbers; `say` formats a number, with the step between labels."""
    numbers = list(values) or [0.0]
    low, high = min(numbers), max(numbers)
    if zero:
        low = min(0.0, low)
    if low == high:
        low, high = low - (abs(low) * 0.05 or 1), high + (abs(high) * 0.05 or 1)
    step = 10 ** math.floor(math.log10((high - low) / 3))
    step *= next(factor for factor in (1, 2, 5, 10) if (high - low) / (factor * step) <= 6)
    first = math.ceil(low / step)
    ticks = [index * step for index in range(first, math.floor(high / step) + 1)]
    room = (high - low) * 0.04
    return Axis(low if zero and low == 0 else low - room, high + room, [(t, say(t, step)) for t in ticks], title)


def logarithmic(values: Iterable[float], say: Callable[[float], str], title: str = "") -> Axis:
    """A logarithmic axis around these values: labelled at powers of ten, or at 1, 2 and 5 where it spans few."""
    positive = [value for value in values if value > 0] or [1.0]
    low, high = min(positive) / 1.1, max(positive) * 1.1
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    steps = (1,) if math.log10(high / low) > 3 else (1, 2, 5)
    ticks = [s * 10.0**d for d in decades for s in steps if low <= s * 10.0**d <= high]
    if len(ticks) < 2:
        # Two labels would overlap.
        near = math.log(max(positive) / min(positive)) < 0.1 * math.log(high / low)
        ends = (min(positive),) if near else (min(positive), max(positive))
        return Axis(low, high, [(t, say(t)) for t in ends], title, log=True)
    every = -(-len(ticks) // 6)
    return Axis(low, high, [(t, say(t)) for t in ticks[::every]], title, log=True)


def ratios(values: Iterable[float], title: str = "") -> Axis:
    """An axis from 1 for multiples of the best value; it is logarithmic if they go far."""
    numbers = [1.0, *values]
    if max(numbers) <= 6:
        return linear(numbers, lambda value, step: f"{value:.{max(0, -math.floor(math.log10(step)))}f} ×", title)
    return logarithmic(numbers, lambda value: f"{value:g} ×", title)


def _element(name: str, attributes: Mapping[str, str], inner: str = "") -> str:
    """An element with escaped attributes around `inner`, which is XML already."""
    head = name + "".join([f' {key}="{escape(value)}"' for key, value in attributes.items()])
    return f"<{head}>{inner}</{name}>" if inner else f"<{head} />"


def _text(text: str) -> str:
    return escape(visible(text))


def _draw_x(area: _PlotArea) -> Iterator[str]:
    top, bottom = _number(area.top), _number(area.bottom)
    ticks = sorted((area.column(value), label) for value, label in area.x.ticks)
    guides = "".join([f"M{_number(at)} {top}V{bottom}" for at, _ in ticks])
    labels = "".join([_written(label, at, area.bottom + 15) for at, label in _apart(ticks)])
    line = f"M{_number(area.left)} {bottom}H{_number(area.right)}"
    yield f'<g class="axis x"><path class="guide" d="{guides}" /><path d="{line}" />{labels}</g>'
    if area.x.title:
        title = _written(area.x.title, (area.left + area.right) / 2, area.bottom + 34)
        yield f'<g class="title">{title}</g>'


def _draw_y(area: _PlotArea) -> Iterator[str]:
    left, right = _number(area.left), _number(area.right)
    ticks = [(area.row(value), label) for value, label in area.y.ticks]
    guides = "".join([f"M{left} {_number(at)}H{right}" for at, _ in ticks])
    labels = "".join([_written(label, area.left - 5, at + 3.5) for at, label in ticks])
    line = f"M{left} {_number(area.top)}V{_number(area.bottom)}"
    yield f'<g class="axis y"><path class="guide" d="{guides}" /><path d="{line}" />{labels}</g>'
    if area.y.title:
        title = _written(area.y.title, -(area.top + area.bottom) / 2, 12)
        yield f'<g class="title" transform="rotate(-90)">{title}</g>'


def _apart(ticks: Iterable[tuple[float, str]]) -> Iterator[tuple[float, str]]:
    """The ticks from left to right, without the labels that would run into the one before."""
    free = -math.inf
    for at, label in ticks:
        half = _LETTER * len(label) / 2
        fits = at - half >= free
        yield at, label if fits else ""
        free = at + half + _LETTER if fits else free


def _written(text: str, x: float, y: float) -> str:
    inner = _text(text)
    head = f'text x="{_number(x)}" y="{_number(y)}"'
    return f"<{head}>{inner}</text>" if inner else f"<{head} />"


def _draw_series(area: _PlotArea, series: Series) -> str:
    lines = [area.path(filter(None, line)) for there, line in groupby(series.points, key=bool) if there]
    drawn = [f'<path d="M{line}" />' for line in lines]
    if series.dots:
        numbers = iter(" ".join(lines).split())
        drawn += [f'<circle cx="{x}" cy="{y}" r="3" />' for x, y in zip(numbers, numbers, strict=True)]
    return _element("g", {"class": f"s-{series.style}"}, "".join(drawn))


def _draw_mark(area: _PlotArea, mark: PlotMark) -> str:
    """A mark. The tab key skips its link, unless a script changes that: a table next to the plot has the same links."""
    attributes = {"class": f"{'mark' if mark.start is None else 'mark bar'} {mark.style}"}
    if mark.link:
        attributes |= {"href": mark.link, "tabindex": "-1"}
    if mark.case is not None:
        attributes["data-case"] = str(mark.case)
    if mark.short:
        attributes["data-short"] = visible(mark.short[:40])
    x, y = area.column(mark.at[0]), area.row(mark.at[1])
    if mark.start is None:
        path = f"M{_number(x)} {_number(y)}{SHAPES[mark.shape % len(SHAPES)]}"
    else:
        path = f"M{_number(area.column(mark.start))} {_number(y - _BAR / 2)}H{_number(x)}v{_BAR}H"
        path += f"{_number(area.column(mark.start))}z"
    inner = _element("title", {}, _text(mark.label[:120])) + _element("path", {"d": path})
    return _element("a" if mark.link else "g", attributes, inner)


def _number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
