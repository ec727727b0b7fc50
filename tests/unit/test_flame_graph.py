"""A flame graph shows frames where they lie and as wide as their share; whatever it draws, it is small and inert."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from xml.etree.ElementTree import Element, fromstring

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from harness.profiling import flame_graph as module
from harness.profiling.flame_graph import COLOURS, DARK_GROUND, DARK_INK, GROUND, INK, MAX_BYTES, flame_graph
from harness.profiling.stacks import Frame, parse, tree

SVG = "{http://www.w3.org/2000/svg}"
TREE = parse(b"main;run;mm 600\nmain;run 100\nmain;load 50\nidle 249\nblink 1")


class Box:
    """A box as the file has it: its place in pixels, its tooltip, its colour and its label, empty if it has none."""

    def __init__(self, element: Element) -> None:
        title, rect, *label = element
        assert [part.tag.removeprefix(SVG) for part in element] in (["title", "rect"], ["title", "rect", "text"])
        self.x, self.y, self.width = (float(element.get(key, "")) for key in ("x", "y", "width"))
        self.name, self.measure = (title.text or "").split("\n")
        self.colour = rect.get("fill", "")
        self.label = "".join(text.text or "" for text in label)


def drawn(root: Frame, *, title: str = "CPU time", unit: str = "µs") -> Element:
    return fromstring(flame_graph(root, title=title, unit=unit))


def boxes(svg: Element) -> dict[str, Box]:
    """By name, for trees in which each has only one place."""
    found = [Box(each) for each in svg.iterfind(f"{SVG}svg")]
    named = {box.name: box for box in found}
    assert len(named) == len(found)
    return named


def header(svg: Element) -> list[str | None]:
    return [text.text for text in svg.iterfind(f"{SVG}text")]


def test_boxes_are_as_wide_as_their_share_and_lie_below_their_callers() -> None:
    svg = drawn(TREE)
    by_name = boxes(svg)
    everything, main, run, load = (by_name[name] for name in ("all", "main", "run", "load"))
    assert [(box.name, box.measure, box.y - everything.y) for box in by_name.values()] == [
        ("all", "1,000 µs, 100 %", 0),
        ("main", "750 µs, 75 %", 18),
        ("run", "700 µs, 70 %", 36),
        ("mm", "600 µs, 60 %", 54),
        ("idle", "249 µs, 24.9 %", 18),
        ("load", "50 µs, 5 %", 36),
        ("blink", "1 µs, 0.1 %", 18),
    ]
    assert everything.x == main.x == run.x == by_name["mm"].x == 10
    assert main.width == pytest.approx(0.75 * 1180 - 1, abs=0.1)
    assert load.x == pytest.approx(run.x + run.width + 1, abs=0.1)
    assert by_name["idle"].x == pytest.approx(main.x + main.width + 1, abs=0.1)
    assert [svg.get("width"), svg.get("viewBox")] == ["1200", f"0 0 1200 {svg.get('height')}"]
    assert float(svg.get("height", "")) == by_name["mm"].y + 18 + 10


def test_the_header_says_what_was_measured_and_how_much_is_not_shown() -> None:
    assert header(drawn(TREE, title="Device time"))[0] == "Device time: 1,000 µs"
    assert "not shown" not in str(header(drawn(TREE)))
    quarters = tree([(["wide"], 4 * 1180 - 4), (["half"], 2), (["less", "f"], 1), (["least"], 1)])  # of a pixel
    svg = drawn(quarters)
    assert set(boxes(svg)) == {"all", "wide", "half"}
    assert (header(svg)[1] or "").endswith("Not shown: 3 of 6, the smallest.")

    empty = drawn(parse(b""), title="Device time")
    assert header(empty) == ["Device time: 0 µs", "Nothing was recorded."]
    assert boxes(empty) == {}


@pytest.mark.parametrize(
    ("width", "label"),
    [
        (400, "torch/nn/modules/linear.py(130):_forward"),
        (200, "linear.py(130):_forward"),
        (50, "forw…"),
        (30, ""),
    ],
)
def test_a_label_that_does_not_fit_loses_its_folder_first_then_its_file(width: int, label: str) -> None:
    name = "torch/nn/modules/linear.py(130):_forward"
    box = boxes(drawn(tree([([name], width), (["void at::native::kernel<4>(int)"], 1180 - width)])))
    assert box[name].label == label
    assert "void at::native::kernel<4>(int)".startswith(box["void at::native::kernel<4>(int)"].label.rstrip("…"))


def test_colours_follow_from_names_and_can_be_read_on_light_and_dark_pages() -> None:
    places = [
        Box(each) for root in (TREE, parse(b"other;main 3\nidle;run 4")) for each in drawn(root).iterfind(f"{SVG}svg")
    ]
    by_name = {box.name: box.colour for box in places}
    assert all(by_name[box.name] == box.colour for box in places)
    names = boxes(drawn(tree([([f"function {index}"], 1) for index in range(200)])))
    assert {box.colour for box in names.values()} == set(COLOURS)
    assert all(contrast(colour, INK) >= 4.5 for colour in COLOURS)
    assert all(contrast(colour, ground) >= 3 for colour in COLOURS for ground in (GROUND, DARK_GROUND))
    assert min(contrast(INK, GROUND), contrast(DARK_INK, DARK_GROUND)) >= 7


def contrast(one: str, other: str) -> float:
    """The contrast ratio of WCAG 2, of two colours such as #1ba17f."""
    low, high = sorted(map(luminance, (one, other)))
    return (high + 0.05) / (low + 0.05)


def luminance(colour: str) -> float:
    channels = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


HOSTILE = [
    "<script>alert(1)</script>",
    '" onload="alert(1)',
    "' onclick='alert(1)",
    "--><a href='javascript:alert(1)'>",
    "</title></text></svg><script/>",
    "&lt;&#60;&amp;&unknown;",
    "\x00\x01\x1b[31m\x7f\x85\r\n\t",
    "\ud800\udcff\ufffe\uffff",
    "\u202egvs.exe\u2066\u200f\u2028",
    "url(https://example.org/x)",
    "עברית 中文 🙂",
    "",
]
NAME = st.text(st.sampled_from("<>&\"' ]=\x00\x1b\n\ud800\u202e\u200f\ufffeא") | st.characters(), max_size=12)
ATTRIBUTES = {
    "svg": {"class", "width", "height", "viewBox", "font-family", "font-size", "fill", "x", "y"},
    "rect": {"width", "height", "fill"},
    "text": {"x", "y", "font-size", "font-weight"},
    "title": set[str](),
    "style": set[str](),
}


@given(st.lists(NAME | st.sampled_from(HOSTILE), max_size=8), NAME, NAME)
@example(HOSTILE, HOSTILE[0], HOSTILE[1])
@example(HOSTILE, HOSTILE[3], HOSTILE[7])
def test_names_are_nothing_but_text(names: list[str], title: str, unit: str) -> None:
    """The trees are made by hand, so that no name was made printable before."""
    root = Frame("root", 200, tuple(Frame(name, 10, (Frame(name * 2, 9),)) for name in names))
    text = flame_graph(root, title=title, unit=unit)
    svg = fromstring(text.encode())
    for element in svg.iter():
        tag = element.tag.removeprefix(SVG)
        assert set(element.keys()) <= ATTRIBUTES[tag], tag
        assert all(re.fullmatch(r"[\w .#%,'-]+", value) for value in element.attrib.values())
        assert tag == "style" or all(c.isprintable() or c == "\n" for c in element.text or "")
        assert not (element.tail or "").strip()
    assert len(list(svg.iterfind(f"{SVG}svg"))) == 1 + 2 * len(names)
    (style,) = svg.iterfind(f"{SVG}style")
    assert style.text == module._STYLE
    assert not re.search(r"url|import|http", module._STYLE), "nothing is fetched"


def wide_and_deep(name: Callable[[int, int], str], columns: int, rows: int) -> Frame:
    """Columns of equal width, each as deep as there are rows."""

    def column(number: int) -> Frame:
        frame = Frame(name(number, rows - 1), 1)
        for row in reversed(range(rows - 1)):
            frame = Frame(name(number, row), 1, (frame,))
        return frame

    return Frame("all", columns, tuple(map(column, range(columns))))


@pytest.mark.parametrize(
    ("columns", "rows", "name"),
    [
        (100_000, 1, lambda column, row: f"{column}"),
        (2_000, 50, lambda column, row: f"{column}.{row}" + "&" * 400),
        (400, 250, lambda column, row: f"{column}.{row}" + "🙂" * 400),
    ],
)
def test_100_000_frames_make_a_bounded_file(columns: int, rows: int, name: Callable[[int, int], str]) -> None:
    text = flame_graph(wide_and_deep(name, columns, rows), title="&" * 1000, unit="<" * 1000)
    assert len(text.encode()) <= MAX_BYTES
    svg = fromstring(text)
    left_out = re.search(r"Not shown: ([\d,]+) of 100,001, the smallest", header(svg)[1] or "")
    assert left_out
    places = sorted((box.x, box.y) for box in map(Box, svg.iterfind(f"{SVG}svg")))
    assert len(places) + int(left_out[1].replace(",", "")) == 100_001
    if rows > 1:
        assert len(text.encode()) > 0.99 * MAX_BYTES, "there were more to draw"
        in_rows = Counter(y for _, y in places[1:])
        in_rows.pop(max(in_rows))
        assert set(in_rows.values()) <= {columns}, "of equal frames, the outer ones are drawn first"
    for (x, y), (next_x, next_y) in pairwise(places[1:]):
        assert next_y == y + 18 if next_x == x else next_y == 74, "each lies right below its caller"
