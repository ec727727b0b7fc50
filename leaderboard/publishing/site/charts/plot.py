"""A plot as inline SVG: axes and series in, pygal draws, and what a page does not need is taken out again.

`figures` says what is drawn. Trusted; names in it are hostile, and come out as text. The SVG has no script, style,
identifier or date, so that equal data give equal bytes; its colours are the stylesheet's, by class.
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
_LETTER = 5.8  # pixels that a character of a label takes, at the most
_BESIDE = 90  # pixels of a plot that are left and right of its axis, at the most
_XLINK = "{http://www.w3.org/1999/xlink}href"
_SETTINGS = frozenset(dir(SerieConfig()))
_PLACES = {"d", "x", "y", "cx", "cy", "transform"}  # whose numbers a screen shows to a tenth at the best
_NUMBER = re.compile(r"-?\d+\.\d{2,}")


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

    def at(self, value: float) -> float:
        return math.log10(value) if self.log else value


class _Chart(pygal.XY):  # type: ignore[misc]  # pygal has no annotations
    """pygal's chart without its own style and script, which a page has no use for, and in half the time.

    pygal looks every attribute up twice by way of itself, and lists the settings of a series anew for each of its
    settings. This does the same once.
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
            told = {at: dict(point) for at, point in enumerate(points) if isinstance(point, dict)}
            values = [told[at].pop("value") if at in told else point or (None, None) for at, point in enumerate(points)]
            made.append(Serie(offset + index, [list(value) for value in values], config, told))
        return made

    def __getattribute__(self, name: str) -> Any:
        state = object.__getattribute__(self, "__dict__").get("state")
        if state is not None and name != "state" and name in state.__dict__ and not name.startswith("__"):
            return state.__dict__[name]
        return object.__getattribute__(self, name)


def plot(title: str, x: Axis, y: Axis, series: Sequence[Series], *, width: int = 460, height: int = 220) -> Markup:
    """Draw; `title` is what a screen reader says of it."""
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
        margin_left=6,  # short labels beside the axis would touch its title
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
        truncate_label=-1,  # `_apart` has left out those that do not fit
    )
    for each in series:
        points: list[Any] = [p if p is None else (x.at(p[0]), y.at(p[1])) for p in each.points]
        if each.links:
            points = [{"value": p, "xlink": {"href": link}} for p, link in zip(points, each.links, strict=True)]
        chart.add(each.style, points, show_dots=each.dots, stroke=each.line)
    chart.add_xml_filter(lambda root: _cleaned(root, title, series))
    return Markup(chart.render(is_unicode=True))


def _apart(x: Axis, room: float) -> Iterator[tuple[float, str]]:
    """The ticks of an axis `room` pixels long, without the labels that would run into the one before."""
    free = -math.inf
    for value, label in sorted(x.ticks):
        at, half = room * (x.at(value) - x.at(x.low)) / (x.at(x.high) - x.at(x.low)), _LETTER * len(label) / 2
        fits = at - half >= free
        yield value, label if fits else ""
        free = at + half + _LETTER if fits else free


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
        near = math.log(max(found) / min(found)) < 0.1 * math.log(high / low)  # two labels would lie on each other
        ends = (min(found),) if near else (min(found), max(found))
        return Axis(low, high, [(t, say(t)) for t in ends], title, log=True)
    every = -(-len(ticks) // 6)
    return Axis(low, high, [(t, say(t)) for t in ticks[::every]], title, log=True)


def _cleaned(root: Element, title: str, series: Sequence[Series]) -> Element:
    """What is left: axes, lines, dots and their labels."""
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
    """The stylesheet's classes in place of pygal's, and each dot's label as its title, which a pointer brings up."""
    for group in root.iter("g"):
        found = re.search(r"serie-(\d+)", group.get("class", ""))
        if found:
            each = series[int(found[1])]
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


def _rounded(found: re.Match[str]) -> str:
    return f"{float(found[0]):.1f}".removesuffix(".0")


def _link(link: Element, label: str) -> None:
    """A plain link in place of XLink's, outside the order of the tab key: a table beside the plot has the same one."""
    link.set("href", link.attrib.pop(_XLINK))
    link.set("tabindex", "-1")
    link.set("aria-label", label)


def _drop_empty(root: Element) -> None:
    for parent in list(root.iter())[::-1]:
        for child in list(parent):
            if child.tag == "g" and len(child) == 0:
                parent.remove(child)
