"""The charts of the site: where marks, bars and lines are drawn, and what they are called."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import timedelta
from xml.etree.ElementTree import Element, fromstring

import pytest

from harness.verdict import BenchmarkResult, Interval, Roofline, Verdict
from harness.verdict.roofline import Calibration
from leaderboard.publishing.site.boards import CaseTimes
from leaderboard.publishing.site.charts import cases, figure
from leaderboard.publishing.site.charts.figure import COLOURS, Palette
from leaderboard.publishing.site.charts.plot import SHAPES, Axis, PlotMark, Series, linear, plot, ratios
from leaderboard.publishing.site.charts.tiny import spark
from leaderboard.publishing.site.document import Step
from tests.sites import CALIBRATION
from tests.verdicts import EPOCH, accepted, interval

SVG = "{http://www.w3.org/2000/svg}"
PALETTE = Palette(["ada", "bob"], ["half", "single", "copy"])


def test_an_author_keeps_a_colour_and_a_case_its_shape() -> None:
    authors = [f"author {number}" for number in range(COLOURS + 2)]
    palette = Palette([*authors, authors[0]], ["one", "two"])
    styles = [palette.style(author) for author in authors]
    assert len(set(styles[:COLOURS])) == COLOURS
    assert styles[COLOURS:] == ["faint", "faint"]
    assert [palette.case(name) for name in ("one", "two", "three")] == [0, 1, None]
    assert [key.name for key in palette.authors()] == authors[:COLOURS]
    assert [key.name for key in palette.cases()] == ["one", "two"]


def run(author: str, *timed: BenchmarkResult) -> Verdict:
    return accepted(author=author, run="a" * 16).model_copy(update={"benchmarks": timed})


def case(name: str, **changes: object) -> BenchmarkResult:
    nothing = {"roofline": None, "minimum_bytes": None, "minimum_flops": None}
    return accepted().benchmarks[0].model_copy(update={**nothing, "name": name, **changes})


def timed(name: str, calibration: Calibration, dtype: str, limit: str, share: float) -> BenchmarkResult:
    """A case that reaches this share of what the calibration allows it."""
    flops = 10**9
    peak = calibration.throughput(dtype)
    ridge = peak / calibration.copy_bytes_per_s  # FLOP per byte
    nbytes = round(flops / ridge * (4 if limit == "memory" else 0.25))
    least_s = max(flops / peak, nbytes / calibration.copy_bytes_per_s)
    roof = Roofline.model_validate({"share": share, "limit": limit})
    score = interval(round(least_s / share * 1e9))
    return case(name, score=score, roofline=roof, minimum_bytes=nbytes, minimum_flops=flops)


@pytest.mark.parametrize("calibrated", [True, False])
def test_a_case_at_its_limit_is_drawn_on_the_roof_of_its_dtype(calibrated: bool) -> None:
    rates = {"float16": 8 * 10**12, "float32": 999_900_000_000}
    calibration = CALIBRATION.model_copy(update={"copy_bytes_per_s": 10**11, "flops_per_s": rates})
    dtypes = {"half": "float16", "single": "float32", "copy": "float16"}
    limits = {"half": "arithmetic", "single": "arithmetic", "copy": "memory"}
    runs = [
        run("ada", *(timed(name, calibration, dtype, limits[name], 1.0) for name, dtype in dtypes.items())),
        run("bob", timed("half", calibration, "float16", "arithmetic", 0.5)),
    ]
    chart = figure.roofline(runs, "NVIDIA H200", calibration if calibrated else None, dtypes, PALETTE, "../")
    assert chart is not None
    since = "calibrated 2026-01-01" if calibrated else "as its verdicts say"
    assert chart.caption == (
        f"Roofline of NVIDIA H200, {since}: memory 100 GB/s; float16 8 TFLOP/s; float32 1 TFLOP/s."
    )
    root = fromstring(chart.picture)
    memory, half, single = (places(each) for each in root.iter(f"{SVG}g") if each.get("class") == "s-roof")
    level_half, level_single = half[1], single[1]
    marks = {mark.findtext(f"{SVG}title", ""): mark for mark in root.iter(f"{SVG}a")}
    by_name = {tuple(title.split(":")[0].split(", ")): places(mark)[:2] for title, mark in marks.items()}
    assert by_name["ada", "half"][1] == pytest.approx(level_half, abs=0.2)
    assert by_name["ada", "single"][1] == pytest.approx(level_single, abs=0.2)
    assert level_half + 1 < by_name["bob", "half"][1] < level_single, "half of a roof of eight lies between it and one"
    x0, y0, x1, y1 = memory
    x, y = by_name["ada", "copy"]
    assert y == pytest.approx(y0 + (y1 - y0) * (x - x0) / (x1 - x0), abs=0.3)
    notes = {note.text for each in root.iter(f"{SVG}g") if each.get("class") == "note" for note in each}
    assert notes >= {"float16 8 TFLOP/s", "float32 1 TFLOP/s"}
    shown = sorted((mark.get("class"), mark.get("data-case")) for mark in marks.values())
    assert shown == [("mark by1", "0"), ("mark by1", "1"), ("mark by1", "2"), ("mark by2", "0")]
    assert "ada, half: 8 TFLOP/s, 100 % of the roof" in marks


def test_without_a_cost_or_a_calibration_no_roofline_is_drawn() -> None:
    bare = case("half", score=interval(1000))
    assert figure.roofline([run("ada", bare)], "d", CALIBRATION, {"half": "float16"}, PALETTE, "") is None
    costly = bare.model_copy(update={"minimum_bytes": 8, "minimum_flops": 8})
    assert figure.roofline([run("ada", costly)], "d", None, {}, PALETTE, "") is None


def places(element: Element) -> list[float]:
    """The numbers of an element's path: x and y of each point in turn, while no letter but M and L is in it."""
    path = element.find(f"{SVG}path")
    assert path is not None
    return [float(number) for number in re.findall(r"[\d.]+", path.get("d", ""))]


def row(name: str, *times_ns: int, author: str = "", baseline: bool = False) -> CaseTimes:
    scores = [Interval(median_ns=ns, low_ns=ns - 5, high_ns=ns + 5, confidence=0.95) for ns in times_ns]
    return CaseTimes(name, "" if baseline else author or name, "a" * 16, tuple(scores))


def test_bars_of_a_case_begin_at_zero_and_are_as_long_as_their_times() -> None:
    rows = [row("ada", 1000, 9), row("bob", 2000, 9), row("eager", 500, 9, baseline=True)]
    root = fromstring(cases.case(0, "half", rows, PALETTE, ""))
    drawn = [path.get("d", "") for path in root.iterfind(f".//{SVG}a/{SVG}path")]
    ends = [[float(at) for at in re.findall(r"[MH]([\d.]+)", each)[:2]] for each in drawn]
    zero = next(float(text.get("x", "")) for text in root.iter(f"{SVG}text") if text.text == "0")
    assert {start for start, _ in ends} == {zero}
    first, second, third = (end - zero for _, end in ends)
    assert second / first == pytest.approx(2, abs=0.02)
    assert third / first == pytest.approx(0.5, abs=0.02)
    notes = [note.text for each in root.iter(f"{SVG}g") if each.get("class") == "note" for note in each]
    assert notes == ["1.00 µs, 1.00 ×", "2.00 µs, 2.00 ×", "500 ns, 0.50 ×"], "the fastest is that of an author"
    assert [each.get("class") for each in root.iter(f"{SVG}a")] == ["mark bar by1", "mark bar by2", "mark bar baseline"]


def test_the_overview_has_each_case_as_multiples_of_its_fastest() -> None:
    chart = cases.overview(["half", "single"], [row("ada", 1000, 300), row("bob", 1500, 200)], PALETTE, "")
    assert chart is not None
    titles = [
        mark.findtext(f"{SVG}title", "").rpartition(", ")[2] for mark in fromstring(chart.picture).iter(f"{SVG}a")
    ]
    assert titles == ["1.000 × the fastest", "1.500 × the fastest", "1.500 × the fastest", "1.000 × the fastest"]
    assert cases.overview(["half"], [row("ada", 1000), row("eager", 500, baseline=True)], PALETTE, "") is None


def test_a_teams_kernel_has_its_authors_colour() -> None:
    rows = [row("quickfix", 1000, author="bob"), row("ada", 2000)]
    chart = cases.overview(["half"], rows, PALETTE, "")
    assert chart is not None
    for picture in (chart.picture, cases.case(0, "half", rows, PALETTE, "")):
        marks = fromstring(picture).iter(f"{SVG}a")
        assert [mark.get("class", "").split()[-1] for mark in marks] == ["by2", "by1"]


@pytest.mark.parametrize(
    ("times_ns", "part", "lowest"),
    [
        ((1000, 990), "5 %", 4.4),
        ((1000, 950), "5 %", 14.0),
        ((1000, 750, 500), "50 %", 14.0),
    ],
)
def test_a_sparkline_says_how_high_it_is(times_ns: tuple[int, ...], part: str, lowest: float) -> None:
    """From 2 at the top to 14 at the bottom; 1 % of a height of 5 % is a fifth of that."""
    moments = (EPOCH + timedelta(days=day) for day in range(9))
    steps = [Step(run="a" * 16, author="ada", at=at, score_ns=ns) for at, ns in zip(moments, times_ns, strict=False)]
    (title, path) = fromstring(spark(steps))
    assert f"the height is {part} of the first" in (title.text or "")
    heights = [float(at) for at in re.findall(r"V([\d.]+)", path.get("d", ""))]
    assert heights[-1] == lowest
    assert heights == sorted(heights)


# ---- plots

X = Axis(0, 3, [(0, "left"), (3, "right")], "across")
Y = Axis(1, 100, [(1, "low"), (100, "high")], log=True)
LINE = Series("faint", [(0, 1), (1, 10), None, (2, 10), (3, 100)])
MARKS = (
    PlotMark((0, 1), "a & b", "a", "here/", "by1", 1, 0),
    PlotMark((3, 100), "c", style="by2"),
    PlotMark((3, 10), "d", start=0.0, link="there/"),
)


def drawn(*series: Series, marks: Sequence[PlotMark] = (), x: Axis = X, y: Axis = Y) -> Element:
    return fromstring(plot("title", x, y, series, marks, width=300, height=100))


def group(root: Element, style: str) -> Element:
    (found,) = (each for each in root.iter(f"{SVG}g") if each.get("class") == style)
    return found


def points(path: Element) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in re.findall(r"([\d.]+) ([\d.]+)", path.get("d", ""))]


def test_a_line_is_broken_by_none_and_lies_at_the_labels_of_its_axes() -> None:
    root = drawn(LINE)
    first, second = (points(path) for path in group(root, "s-faint"))
    labels = {text.text: (float(text.get("x", "")), float(text.get("y", ""))) for text in root.iter(f"{SVG}text")}
    assert [len(first), len(second)] == [2, 2]
    assert (first[0][0], second[1][0]) == (labels["left"][0], labels["right"][0])
    assert second[1][1] - first[0][1] == labels["high"][1] - labels["low"][1] < 0
    assert first[1][1] == second[0][1] == (first[0][1] + second[1][1]) / 2, "10 is half way from 1 to 100"


def test_zero_lies_at_the_low_end_of_a_logarithmic_axis() -> None:
    (path,) = group(drawn(Series("main", [(0, 0), (3, 1)])), "s-main")
    assert points(path)[0][1] == points(path)[1][1]


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
