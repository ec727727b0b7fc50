"""A plot as inline SVG: axes with guides and labels, lines, and dots that may be links.

`figure`, `trace` and the front page say what is drawn. Trusted; the names in it are hostile, and ElementTree escapes
them. The SVG has no script, style, identifier or date, so that equal data give equal bytes; the stylesheet colours it
by class.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from xml.etree.ElementTree import Element, SubElement, tostring

from markupsafe import Markup

from leaderboard.text.visible import visible

Point = tuple[float, float]

# Pixels. The stylesheet sets text in 10 pixels; how wide a label is depends on the reader's font, and is estimated.
_LETTER = 6
_TOP, _RIGHT, _BOTTOM, _LEFT = 6, 12, 22, 10  # margins; on the left the labels' width is added
_INSET = 8  # from the ends of the horizontal axis, for the first and the last dot
_X_TITLE, _Y_TITLE = 19, 16  # added to the bottom and to the left where the axis has a title


@dataclass(frozen=True)
class Series:
    """Points as a line (None breaks it), as dots, or both; `style` is a class of the stylesheet.

    Where there are links there are labels, one for each point.
    """

    style: str
    points: Sequence[Point | None]
    line: bool = True
    dots: bool = False
    labels: Sequence[str] = ()
    links: Sequence[str] = ()


@dataclass(frozen=True)
class Axis:
    """From `low` to `high`, with a label at some places; `log` axes are given and labelled in plain values."""

    low: float
    high: float
    ticks: Sequence[tuple[float, str]]
    title: str = ""
    log: bool = False

    def share(self, value: float) -> float:
        """The part of the axis that lies below a value: 0 at `low`, 1 at `high`."""
        if self.log:  # it has no zero, which the lower bound of a short time may be
            return math.log(max(value, self.low) / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)


@dataclass(frozen=True)
class _Frame:
    """Two axes, and the rectangle that they span: pixels from the upper left corner of the plot."""

    x: Axis
    y: Axis
    left: float
    right: float
    top: float
    bottom: float

    def column(self, value: float) -> float:
        return self.left + _INSET + (self.right - self.left - 2 * _INSET) * self.x.share(value)

    def row(self, value: float) -> float:
        return self.bottom - (self.bottom - self.top) * self.y.share(value)


def plot(title: str, x: Axis, y: Axis, series: Sequence[Series], *, width: int = 460, height: int = 220) -> Markup:
    """Draw; `title` is what a screen reader says of it."""
    svg = Element("svg", {"xmlns": "http://www.w3.org/2000/svg", "class": "plot", "viewBox": f"0 0 {width} {height}"})
    svg.set("width", str(width))
    svg.set("height", str(height))
    svg.set("role", "group" if any(each.links for each in series) else "img")
    SubElement(svg, "title").text = visible(title)
    left = _LEFT + _LETTER * max((len(label) for _, label in y.ticks), default=0) + (_Y_TITLE if y.title else 0)
    bottom = height - _BOTTOM - (_X_TITLE if x.title else 0)
    frame = _Frame(x, y, left, width - _RIGHT, _TOP, bottom)
    _draw_x(svg, frame)
    _draw_y(svg, frame)
    for each in series:
        _draw_series(svg, frame, each)
    return Markup(tostring(svg, encoding="unicode"))


def linear(values: Iterable[float], say: Callable[[float, float], str], title: str = "", *, zero: bool = False) -> Axis:
    """An axis around these values, labelled at round numbers; `say` is given a number and how far it is to the next."""
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
        # Two labels would lie on each other.
        near = math.log(max(positive) / min(positive)) < 0.1 * math.log(high / low)
        ends = (min(positive),) if near else (min(positive), max(positive))
        return Axis(low, high, [(t, say(t)) for t in ends], title, log=True)
    every = -(-len(ticks) // 6)
    return Axis(low, high, [(t, say(t)) for t in ticks[::every]], title, log=True)


def _draw_x(svg: Element, frame: _Frame) -> None:
    top, bottom = _number(frame.top), _number(frame.bottom)
    ticks = sorted((frame.column(value), label) for value, label in frame.x.ticks)
    axis = SubElement(svg, "g", {"class": "axis x"})
    SubElement(axis, "path", {"class": "guide", "d": "".join(f"M{_number(at)} {top}V{bottom}" for at, _ in ticks)})
    SubElement(axis, "path", {"d": f"M{_number(frame.left)} {bottom}H{_number(frame.right)}"})
    for at, label in _apart(ticks):
        _write(axis, label, at, frame.bottom + 15)
    if frame.x.title:
        title = SubElement(svg, "g", {"class": "title"})
        _write(title, frame.x.title, (frame.left + frame.right) / 2, frame.bottom + 34)


def _draw_y(svg: Element, frame: _Frame) -> None:
    left, right = _number(frame.left), _number(frame.right)
    ticks = [(frame.row(value), label) for value, label in frame.y.ticks]
    axis = SubElement(svg, "g", {"class": "axis y"})
    SubElement(axis, "path", {"class": "guide", "d": "".join(f"M{left} {_number(at)}H{right}" for at, _ in ticks)})
    SubElement(axis, "path", {"d": f"M{left} {_number(frame.top)}V{_number(frame.bottom)}"})
    for at, label in ticks:
        _write(axis, label, frame.left - 5, at + 3.5)
    if frame.y.title:
        title = SubElement(svg, "g", {"class": "title", "transform": "rotate(-90)"})
        _write(title, frame.y.title, -(frame.top + frame.bottom) / 2, 12)


def _apart(ticks: Iterable[tuple[float, str]]) -> Iterator[tuple[float, str]]:
    """The ticks from left to right, without the labels that would run into the one before."""
    free = -math.inf
    for at, label in ticks:
        half = _LETTER * len(label) / 2
        fits = at - half >= free
        yield at, label if fits else ""
        free = at + half + _LETTER if fits else free


def _write(parent: Element, text: str, x: float, y: float) -> None:
    SubElement(parent, "text", {"x": _number(x), "y": _number(y)}).text = visible(text)


def _draw_series(svg: Element, frame: _Frame, series: Series) -> None:
    group = SubElement(svg, "g", {"class": f"s-{series.style}"})
    places = [point and (_number(frame.column(point[0])), _number(frame.row(point[1]))) for point in series.points]
    if series.line:
        for there, run in groupby(places, key=bool):
            if there:
                SubElement(group, "path", {"d": "M" + " ".join(f"{x} {y}" for x, y in filter(None, run))})
    if series.dots:
        labels, links = (each or [""] * len(places) for each in (series.labels, series.links))
        for place, label, link in zip(places, labels, links, strict=True):
            if place:
                _draw_dot(group, *place, visible(label[:80]), link)


def _draw_dot(parent: Element, x: str, y: str, label: str, link: str) -> None:
    """A pointer brings up the label. The tab key leaves out links: a table beside the plot has the same ones."""
    if link:
        parent = SubElement(parent, "a", {"href": link, "tabindex": "-1", "aria-label": label})
    dot = SubElement(parent, "circle", {"cx": x, "cy": y, "r": "3"})
    if label:
        SubElement(dot, "title").text = label


def _number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
