"""A plot is drawn where its numbers lie, in few bytes, and the same each time."""

from __future__ import annotations

import re
from xml.etree.ElementTree import Element, fromstring

from leaderboard.publishing.site.charts.plot import Axis, Series, linear, plot

SVG = "{http://www.w3.org/2000/svg}"
X = Axis(0, 3, [(0, "left"), (3, "right")], "across")
Y = Axis(1, 100, [(1, "low"), (100, "high")], log=True)
LINE = Series("faint", [(0, 1), (1, 10), None, (2, 10), (3, 100)])
DOTS = Series("main", [(0, 1), None, (3, 100)], line=False, dots=True, labels=["a & b", "", "c"], links=["a", "b", "c"])


def drawn(*series: Series, x: Axis = X, y: Axis = Y) -> Element:
    return fromstring(plot("title", x, y, series, width=300, height=100))


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


def test_dots_link_and_are_named_and_a_missing_one_takes_its_label_with_it() -> None:
    links = list(group(drawn(LINE, DOTS), "s-main"))
    assert [(each.get("href"), each.get("aria-label")) for each in links] == [("a", "a & b"), ("c", "c")]
    assert [[title.text for title in each.iter(f"{SVG}title")] for each in links] == [["a & b"], ["c"]]
    assert [drawn(each).get("role") for each in (LINE, DOTS)] == ["img", "group"]


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
