"""A plot as inline SVG: axes and series in, text out.

`figure` says what is drawn. Trusted; names in it are hostile, and come out as text. The SVG has no script, style,
identifier or date, so that equal data give equal bytes; its colours are the stylesheet's, by class.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, zip_longest

from markupsafe import Markup, escape

from leaderboard.visible import visible

Point = tuple[float, float]
_LETTER = 5.8  # pixels that a character of a label takes, at the most
_LINE, _TOP, _RIGHT = 18, 6, 14


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
        """Where a value lies: 0 at `low`, 1 at `high`."""
        low, high, at = (math.log10(v) if self.log else v for v in (self.low, self.high, value))
        return (at - low) / (high - low)


def plot(title: str, x: Axis, y: Axis, series: Sequence[Series], *, width: int = 460, height: int = 220) -> Markup:
    """Draw; `title` is what a screen reader says of it."""
    left = 8 + max((_LETTER * len(label) for _, label in y.ticks), default=0.0) + (_LINE if y.title else 0)
    frame = _Frame(x, y, left, _TOP, width - _RIGHT, height - _LINE - (_LINE if x.title else 0))
    role = "group" if any(each.links for each in series) else "img"
    head = f'<svg xmlns="http://www.w3.org/2000/svg" class="plot" viewBox="0 0 {width} {height}" width="{width}"'
    parts = [f'{head} height="{height}" role="{role}"><title>{_text(title)}</title>', *frame.axes(height)]
    for each in series:
        parts.append(f'<g class="s-{each.style}">')
        parts += frame.lines(each.points) if each.line else ()
        parts += frame.dots(each) if each.dots else ()
        parts.append("</g>")
    return Markup("".join((*parts, "</svg>")))


@dataclass(frozen=True)
class _Frame:
    """Where on the drawing the axes' lowest and highest values lie, in pixels from its upper left corner."""

    x: Axis
    y: Axis
    left: float
    top: float
    right: float
    bottom: float

    def across(self, value: float) -> float:
        return self.left + self.x.share(value) * (self.right - self.left)

    def down(self, value: float) -> float:
        return self.bottom - self.y.share(value) * (self.bottom - self.top)

    def axes(self, height: int) -> Iterator[str]:
        """Two lines, a guide for each tick with its label where that meets no other, and the titles."""
        across, down = f"H{_px(self.right)}", f"V{_px(self.bottom)}"
        left, top, bottom = _px(self.left), _px(self.top), _px(self.bottom)
        yield f'<g class="axis y"><path d="M{left} {bottom}{across}"/>'
        for value, label in self.y.ticks:
            at = self.down(value)
            yield f'<path class="guide" d="M{left} {_px(at)}{across}"/>'
            yield f'<text x="{_px(self.left - 5)}" y="{_px(at + 3.5)}">{_text(label)}</text>'
        yield f'</g><g class="axis x"><path d="M{left} {top}{down}"/>'
        room, free = 0.7 * (self.right + _RIGHT), -math.inf  # as long names beside the y axis leave it, at the least
        for value, label in sorted(self.x.ticks):
            at, half, inside = self.across(value), _LETTER * len(label) / 2, room * self.x.share(value)
            yield f'<path class="guide" d="M{_px(at)} {top}{down}"/>'
            if inside - half >= free:
                x = _px(min(at, self.right + _RIGHT - half))
                yield f'<text x="{x}" y="{_px(self.bottom + 13)}">{_text(label)}</text>'
                free = inside + half + _LETTER
        yield "</g>"
        if self.x.title:
            middle = _px((self.left + self.right) / 2)
            yield f'<text class="title" x="{middle}" y="{height - 4}">{_text(self.x.title)}</text>'
        if self.y.title:
            turned = f"translate(10 {_px((self.top + self.bottom) / 2)}) rotate(-90)"
            yield f'<text class="title" transform="{turned}">{_text(self.y.title)}</text>'

    def lines(self, points: Sequence[Point | None]) -> Iterator[str]:
        for whole, run in groupby(points, key=lambda point: point is not None):
            places = [self._at(point) for point in run if point is not None]
            if whole and len(places) > 1:
                yield f'<path d="M{"L".join(places)}"/>'

    def dots(self, series: Series) -> Iterator[str]:
        """A label is the dot's title, which a pointer brings up. A link stands outside the order of the tab key: a
        table beside the plot has the same one."""
        for point, label, link in zip_longest(series.points, series.labels, series.links):
            if point is None:
                continue
            said = _text(label[:80]) if label else ""
            named = f"<title>{said}</title>" if said else ""
            x, y = self._at(point).split(" ")
            dot = f'<circle cx="{x}" cy="{y}" r="3">{named}</circle>'
            yield f'<a href="{escape(link)}" tabindex="-1" aria-label="{said}">{dot}</a>' if link else dot

    def _at(self, point: Point) -> str:
        return f"{_px(self.across(point[0]))} {_px(self.down(point[1]))}"


def _px(value: float) -> str:
    """A place, to a tenth of a pixel: a screen shows no more."""
    return f"{value:.1f}".removesuffix(".0")


def _text(text: str) -> str:
    return str(escape(visible(text)))


def linear(values: Iterable[float], say: Callable[[float, float], str], title: str = "", *, zero: bool = False) -> Axis:
    """An axis around these values, labelled at round numbers; `say` is given a number and how far it is to the next."""
    found = list(values) or [0.0]
    low, high = min(found), max(found)
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
    found = [value for value in values if value > 0] or [1.0]
    low, high = min(found) / 1.1, max(found) * 1.1
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    steps = (1,) if math.log10(high / low) > 3 else (1, 2, 5)
    ticks = [s * 10.0**d for d in decades for s in steps if low <= s * 10.0**d <= high]
    if len(ticks) < 2:
        return Axis(
            low,
            high,
            [(t, say(t)) for t in (min(found), max(found))][: 1 + (min(found) != max(found))],
            title,
            log=True,
        )
    every = -(-len(ticks) // 6)
    return Axis(low, high, [(t, say(t)) for t in ticks[::every]], title, log=True)
