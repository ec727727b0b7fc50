"""A plot is drawn where its numbers lie, in few bytes, and the same each time."""

from __future__ import annotations

import re
from collections.abc import Sequence
from xml.etree.ElementTree import Element, fromstring

import pytest

from leaderboard.publishing.site.charts.plot import SHAPES, Axis, Mark, Series, linear, plot, ratios

SVG = "{http://www.w3.org/2000/svg}"
X = Axis(0, 3, [(0, "left"), (3, "right")], "across")
Y = Axis(1, 100, [(1, "low"), (100, "high")], log=True)
LINE = Series("faint", [(0, 1), (1, 10), None, (2, 10), (3, 100)])
MARKS = (
    Mark((0, 1), "a & b", "a", "here/", "by1", 1, 0),
    Mark((3, 100), "c", style="by2"),
    Mark((3, 10), "d", start=0.0, link="there/"),
)


def drawn(*series: Series, marks: Sequence[Mark] = (), x: Axis = X, y: Axis = Y) -> Element:
    return fromstring(plot("title", x, y, series, marks, width=300, height=100))


def group(root: Element, style: str) -> Element:
    (found,) = (each for each in root.iter(f"{SVG}g") if each.get("class") == style)
    return found


def places(path: Element) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in re.findall(r"([\d.]+) ([\d.]+)", path.get("d", ""))]


def test_a_line_is_broken_by_none_and_lies_at_the_labels_of_its_axes() -> None:
    root = drawn(LINE)
    first, second = (places(path) for path in group(root, "s-faint"))
    labels = {text.text: (float(text.get("x", "")), float(text.get("y", ""))) for text in root.iter(f"{SVG}text")}
    assert [len(first), len(second)] == [2, 2]
    assert (first[0][0], second[1][0]) == (labels["left"][0], labels["right"][0])
    assert second[1][1] - first[0][1] == labels["high"][1] - labels["low"][1] < 0
    assert first[1][1] == second[0][1] == (first[0][1] + second[1][1]) / 2, "10 is half way from 1 to 100"


def test_zero_lies_at_the_low_end_of_a_logarithmic_axis() -> None:
    (path,) = group(drawn(Series("main", [(0, 0), (3, 1)])), "s-main")
    assert places(path)[0][1] == places(path)[1][1]


def test_marks_are_named_coloured_and_linked_and_bars_lie_below_lines() -> None:
    root = drawn(LINE, marks=MARKS)
    found = [each for each in root if each.get("class", "").startswith(("mark", "s-"))]
    assert [each.get("class") for each in found] == ["mark bar main", "s-faint", "mark by1", "mark by2"]
    bar, _, first, second = found
    assert [[title.text for title in each.iter(f"{SVG}title")] for each in (bar, first, second)] == [
        ["d"],
        ["a & b"],
        ["c"],
    ]
    assert [each.tag.removeprefix(SVG) for each in (bar, first, second)] == ["a", "a", "g"]
    assert [first.get(name) for name in ("href", "data-short", "data-case", "tabindex")] == ["here/", "a", "0", "-1"]
    assert [drawn(marks=each).get("role") for each in (MARKS[1:2], MARKS[:1])] == ["img", "group"]
    (square,), (rectangle,) = (each.findall(f"{SVG}path") for each in (first, bar))
    assert square.get("d", "").endswith(SHAPES[1])
    start, end = (float(at) for at in re.findall(r"[MH]([\d.]+)", rectangle.get("d", ""))[:2])
    labels = {text.text: float(text.get("x", "")) for text in root.iter(f"{SVG}text")}
    assert [start, end] == [labels["left"], labels["right"]]


@pytest.mark.parametrize(
    ("values", "log", "first", "last"),
    [
        ([1.0, 1.38], False, "1.0 ×", "1.3 ×"),
        ([1.004, 1.011], False, "1.000 ×", "1.010 ×"),
        ([1.0, 40.0], True, "1 ×", "20 ×"),
    ],
)
def test_multiples_begin_at_one(values: list[float], log: bool, first: str, last: str) -> None:
    axis = ratios(values)
    assert axis.low < 1 <= max(values) < axis.high
    assert (axis.log, axis.ticks[0][1], axis.ticks[-1][1]) == (log, first, last)


def test_labels_that_would_overlap_are_left_out() -> None:
    near = Axis(0, 100, [(at, f"label {at}") for at in (0, 8, 50, 51, 52, 95)])
    texts = [text.text for text in group(drawn(LINE, x=near), "axis x").iter(f"{SVG}text")]
    assert [text for text in texts if text] == ["label 0", "label 50", "label 95"]


def test_numbers_have_a_tenth_at_the_most_and_equal_data_give_equal_bytes() -> None:
    axis = linear([0, 1 / 3, 7 / 9], lambda value, _: f"{value:.1f}")
    line = Series("main", [(at / 7, at / 9) for at in range(8)], dots=True)
    first, second = (str(plot("sevenths", axis, axis, [line])) for _ in range(2))
    assert first == second
    assert len(re.findall(r"\d\.\d", first)) > 20
    assert re.findall(r"\d+\.\d\d+|\d\.0\b(?!<)", first) == []
