"""Draws axes and series as inline SVG with pygal, and removes what a page does not need.

`figure` and `trace` say what is drawn. Trusted; names in labels are hostile and are escaped. The SVG has no script,
style, identifier or date, so equal data give equal bytes; classes of the stylesheet set its colours.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from xml.etree.ElementTree import Element, SubElement

import pygal
from markupsafe import Markup
from pygal.config import SerieConfig
from pygal.serie import Serie
from pygal.util import ident

from leaderboard.text.visible import visible

Point = tuple[float, float]
_LETTER = 5.8  # maximum width of a label's character, in pixels
_BESIDE = 90  # maximum width left and right of the x axis, in pixels
_XLINK = "{http://www.w3.org/1999/xlink}href"
_SETTINGS = frozenset(dir(SerieConfig()))
_PLACES = {"d", "x", "y", "cx", "cy", "transform"}  # attributes rounded to a tenth of a pixel
_NUMBER = re.compile(r"-?\d+\.\d{2,}")


@dataclass(frozen=True)
class Series:
    """Points drawn as a line (None breaks it), as dots, or both; `style` is a class of the stylesheet.

    If there are links, there is one label and one link per point.
    """

    style: str
    points: Sequence[Point | None]
    line: bool = True
    dots: bool = False
    labels: Sequence[str] = ()
    links: Sequence[str] = ()


@dataclass(frozen=True)
class Axis:
    """An axis from `low` to `high`, labelled at `ticks`; all values are plain numbers, also for `log` axes."""

    low: float
    high: float
    ticks: Sequence[tuple[float, str]]
    title: str = ""
    log: bool = False

    def at(self, value: float) -> float:
        return math.log10(value) if self.log else value


class _Chart(pygal.XY):  # type: ignore[misc]  # pygal has no annotations
    """pygal's chart without its own style and script, drawn in half the time.

    pygal looks up every attribute twice, and lists the settings of a series again for each setting. This does both
    once.
    """

    def _draw(self) -> None:
        self.svg.add_styles = self.svg.add_scripts = lambda: None
        super()._draw()

    def prepare_values(self, raw: Any, offset: int = 0) -> list[Serie]:
        shared = {name: value for name, value in self.state.__dict__.items() if name in _SETTINGS}
        self._adapt = self._x_adapt = ident  # points are numbers already
        made = []
        for index, (points, own) in enumerate(raw or ()):
            config = SerieConfig()
            config(**shared)
            config(**own)
            meta = {at: dict(point) for at, point in enumerate(points) if isinstance(point, dict)}
            values = [meta[at].pop("value") if at in meta else point or (None, None) for at, point in enumerate(points)]
            made.append(Serie(offset + index, [list(value) for value in values], config, meta))
        return made

    def __getattribute__(self, name: str) -> Any:
        state = object.__getattribute__(self, "__dict__").get("state")
        if state is not None and name != "state" and name in state.__dict__ and not name.startswith("__"):
            return state.__dict__[name]
        return object.__getattribute__(self, name)


def plot(title: str, x: Axis, y: Axis, series: Sequence[Series], *, width: int = 460, height: int = 220) -> Markup:
    """Draw a plot of `width` by `height` pixels; screen readers announce `title`."""
    chart = _Chart(
        width=width,
        height=height,
        title=None,
        show_legend=False,
        allow_interruptions=True,
        print_values=False,
        disable_xml_declaration=True,
        no_prefix=True,
        js=[],
        css=[],
        margin=2,
        margin_bottom=8,
        margin_left=6,  # short tick labels would touch the axis title
        margin_right=12,
        spacing=4,
        dots_size=3,
        x_title=x.title or None,
        y_title=y.title or None,
        x_labels=[{"value": x.at(value), "label": label} for value, label in _apart(x, width - _BESIDE)],
        y_labels=[{"value": y.at(value), "label": label} for value, label in y.ticks],
        xrange=(x.at(x.low), x.at(x.high)),
        range=(y.at(y.low), y.at(y.high)),
        show_x_guides=True,
        explicit_size=True,
        truncate_label=-1,  # `_apart` drops the labels that do not fit
    )
    for each in series:
        points: list[Any] = [p if p is None else (x.at(p[0]), y.at(p[1])) for p in each.points]
        if each.links:
            points = [{"value": p, "xlink": {"href": link}} for p, link in zip(points, each.links, strict=True)]
        chart.add(each.style, points, show_dots=each.dots, stroke=each.line)
    chart.add_xml_filter(lambda root: _cleaned(root, title, series))
    return Markup(chart.render(is_unicode=True))


def _apart(x: Axis, room: float) -> Iterator[tuple[float, str]]:
    """The ticks of an axis `room` pixels long, without the labels that would overlap the one before."""
    free = -math.inf
    for value, label in sorted(x.ticks):
        at, half = room * (x.at(value) - x.at(x.low)) / (x.at(x.high) - x.at(x.low)), _LETTER * len(label) / 2
        fits = at - half >= free
        yield value, label if fits else ""
        free = at + half + _LETTER if fits else free


def linear(values: Iterable[float], say: Callable[[float, float], str], title: str = "", *, zero: bool = False) -> Axis:
    """An axis around these values, labelled at round numbers; `say` formats a number, given the step to the next."""
    shown = list(values) or [0.0]
    low, high = min(shown), max(shown)
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
    """A logarithmic axis around these values: labelled at powers of ten, or also at 2 and 5 if it spans few."""
    shown = [value for value in values if value > 0] or [1.0]
    low, high = min(shown) / 1.1, max(shown) * 1.1
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    steps = (1,) if math.log10(high / low) > 3 else (1, 2, 5)
    ticks = [s * 10.0**d for d in decades for s in steps if low <= s * 10.0**d <= high]
    if len(ticks) < 2:
        near = math.log(max(shown) / min(shown)) < 0.1 * math.log(high / low)  # two labels would overlap
        ends = (min(shown),) if near else (min(shown), max(shown))
        return Axis(low, high, [(t, say(t)) for t in ends], title, log=True)
    every = -(-len(ticks) // 6)
    return Axis(low, high, [(t, say(t)) for t in ticks[::every]], title, log=True)


def _cleaned(root: Element, title: str, series: Sequence[Series]) -> Element:
    """Keep only axes, lines, dots and their labels."""
    for child in list(root):
        if not isinstance(child.tag, str) or child.tag in {"defs", "title"}:
            root.remove(child)
    root.attrib.pop("id", None)
    root.set("class", "plot")
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag in {"rect", "desc", "title"} or child.get("class") in {"tooltip", "plot tooltip-overlay"}:
                parent.remove(child)
    named = Element("title")
    named.text = title
    root.insert(0, named)
    _restyle(root, series)
    _drop_empty(root)
    root.set("role", "group" if any(each.links for each in series) else "img")
    return root


def _restyle(root: Element, series: Sequence[Series]) -> None:
    """Replace pygal's classes with the stylesheet's, and make each dot's label its title, shown on hover."""
    for group in root.iter("g"):
        numbered = re.search(r"serie-(\d+)", group.get("class", ""))
        if numbered:
            each = series[int(numbered[1])]
            group.set("class", f"s-{each.style}")
            for label, dot in zip(each.labels, group.iter("circle"), strict=False):
                SubElement(dot, "title").text = visible(label[:80])
            for label, link in zip(each.labels, group.iter("a"), strict=False):
                _link(link, visible(label[:80]))
    for element in root.iter():
        kind = element.get("class")
        if kind is not None:
            kept = " ".join(
                w for w in kind.split() if w not in {"reactive", "nofill", "always_show", "tooltip-trigger"}
            )
            if kept:
                element.set("class", kept)
            else:
                del element.attrib["class"]
        element.attrib.pop("style", None)
        for name in _PLACES & element.attrib.keys():
            element.set(name, _NUMBER.sub(_rounded, element.attrib[name]))


def _rounded(number: re.Match[str]) -> str:
    return f"{float(number[0]):.1f}".removesuffix(".0")


def _link(link: Element, label: str) -> None:
    """Replace an XLink with a plain link, outside the tab order: a table next to the plot has the same link."""
    link.set("href", link.attrib.pop(_XLINK))
    link.set("tabindex", "-1")
    link.set("aria-label", label)


def _drop_empty(root: Element) -> None:
    for parent in list(root.iter())[::-1]:
        for child in list(parent):
            if child.tag == "g" and len(child) == 0:
                parent.remove(child)
