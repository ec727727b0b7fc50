"""Collapsed stacks are read or refused, and a flame graph of them shows each frame at its place and width."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from xml.etree.ElementTree import Element, fromstring

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from harness.profiling import flame_graph as module
from harness.profiling import stacks
from harness.profiling.flame_graph import COLOURS, DARK_GROUND, DARK_INK, GROUND, INK, MAX_BYTES, flame_graph
from harness.profiling.stacks import DEEPER, ROOT, UNNAMED, Frame, StacksError, collapse, parse, stacks_of, tree

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


def test_the_header_shows_the_measure_and_what_is_left_out() -> None:
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
    "<script>alert(1)</script>", '" onload="alert(1)', "' onclick='alert(1)", "--><a href='javascript:alert(1)'>",
    "</title></text></svg><script/>", "&lt;&#60;&amp;&unknown;", "\x00\x01\x1b[31m\x7f\x85\r\n\t",
    "\ud800\udcff\ufffe\uffff", "\u202egvs.exe\u2066\u200f\u2028", "url(https://example.org/x)", "עברית 中文 🙂", "",
]  # fmt: skip
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


# ---- collapsed stacks

# Names of every kind: the separators of the format, what is invisible, lone surrogates, and ordinary ones that collide.
NAMES = st.text(st.sampled_from("ab; \n\t\r\x00\x85\u2028\u202e\ud800\ufffe\\…é中") | st.characters(), max_size=6)
STACKS = st.lists(
    st.tuples(st.lists(NAMES | st.sampled_from(["f", "g"]), max_size=5), st.integers(0, 10**12)), max_size=20
)


def chain(root: Frame) -> list[str]:
    """The names from the outermost frame to the innermost, in a tree of one stack."""
    names = []
    while root.children:
        (root,) = root.children
        names.append(root.name)
    return names


def test_equal_stacks_are_added_up_and_the_largest_callee_comes_first() -> None:
    root = parse(b"main;load 5\nmain;run 10\nmain 1\n\nmain;run;mm 30\nmain;run 2\nidle 4\nnever 0")
    main = Frame("main", 48, (Frame("run", 42, (Frame("mm", 30),)), Frame("load", 5)))
    assert root == Frame(ROOT, 52, (main, Frame("idle", 4)))
    assert [main.own, main.children[0].own, root.own] == [1, 12, 0]
    assert collapse(stacks_of(root)) == "main 1\nmain;run 12\nmain;run;mm 30\nmain;load 5\nidle 4\n"


def test_no_lines_are_an_empty_tree() -> None:
    assert parse(b"") == parse(b"\n\n") == Frame(ROOT, 0)
    assert collapse(stacks_of(Frame(ROOT, 0))) == ""


@pytest.mark.parametrize(
    ("stack", "names"),
    [
        (b"a b;c d ", ["a b", "c d "]),
        (b"caf\xc3\xa9;\xff;\xc3", ["café", r"\udcff", r"\udcc3"]),
        (b"\x1b[31mred;nul\x00;tab\t;cr\r", [r"\x1b[31mred", r"nul\x00", r"tab\t", r"cr\r"]),
        ("\u202eevil;\u200fm;\ufeff".encode(), [r"\u202eevil", r"\u200fm", r"\ufeff"]),
        ("one\u2028two;\x85;\u00a0".encode(), [r"one\u2028two", r"\x85", r"\xa0"]),
        (b"", [UNNAMED]),
        (b"a;;b", ["a", UNNAMED, "b"]),
        (b"1 2 3", ["1 2 3"]),
        (b"n" * 256, ["n" * 256]),
        (b"n" * 257, ["n" * 255 + "…"]),
        (b"\x00" * 100, [(r"\x00" * 64)[:255] + "…"]),
        (b";".join([b"f"] * 256), ["f"] * 256),
        (b";".join([b"f"] * 257), ["f"] * 255 + [DEEPER]),
        (b";" * 100_000, [UNNAMED] * 255 + [DEEPER]),
    ],
)
def test_names_become_printable_and_bounded(stack: bytes, names: list[str]) -> None:
    assert chain(parse(stack + b" 7\n")) == names


@pytest.mark.parametrize(
    "line",
    [
        *(b"a;b", b"a;b ", b"12", b"a;b\t12", b"a -1", b"a +1", b"a 1.5", b"a 1e3", b"a NaN", b"a inf", b"a 1_000"),
        *(b"a 12\r", "a ٣".encode(), "a 1\u2028".encode(), b"a 1000000000000000", b"a " + b"9" * 5000, b"\x00\xff"),
    ],
)
def test_a_line_without_a_count_is_refused_and_named(line: bytes) -> None:
    with pytest.raises(StacksError) as refused:
        parse(b"fine 1\n" + line + b"\nfine 1\n")
    assert str(refused.value) == "stacks: line 2 does not end in a space and a count of 1 to 15 digits"


def test_stacks_beyond_the_limits_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for bound, value in {"MAX_BYTES": 60, "MAX_LINES": 6, "MAX_FRAMES": 4}.items():
        monkeypatch.setattr(stacks, bound, value)
    most = 10**15 - 1
    assert parse(b"f;f;f;f 1\n" + b"f" * 48 + b" 0").value == 1
    assert parse(b"a 1\n" * 6).value == 6
    assert parse(b"a;b 1\nc;d 2\n").value == 3
    assert parse(b"a %d\nb 1\n" % (most - 1)).value == most
    for text, message in {
        b"f" * 59 + b" 1": "stacks: 61 bytes; at most 60 are read",
        b"a 1\n" * 7: "stacks: more than 6 lines",
        b"\n" * 7: "stacks: more than 6 lines",
        b"a;b 1\nc;d;e 2\n": "stacks: more than 4 different frames",
        b"a %d\nb 1\n" % most: "stacks: a negative count, or more than 999,999,999,999,999 in all",
    }.items():
        with pytest.raises(StacksError, match=re.escape(message)):
            parse(text)


def test_a_tree_has_no_negative_value_and_no_frame_less_than_its_callees() -> None:
    with pytest.raises(StacksError, match="negative"):
        tree([(["a"], 5), (["b"], -1)])
    with pytest.raises(ValueError, match="a frame of 2, less than its children"):
        Frame("a", 2, (Frame("b", 1), Frame("c", 2)))


@given(STACKS)
@example([([], 1), ([""], 2), (["a;b"], 3), (["a", "b"], 4), (["x"] * 300, 5), (["\udcff" * 300], 6)])
def test_a_tree_is_the_same_after_it_was_written_and_read(pairs: list[tuple[list[str], int]]) -> None:
    root = tree(pairs)
    assert root.value == sum(value for _, value in pairs)
    assert tree(stacks_of(root)) == root
    assert parse(collapse(stacks_of(root)).encode()) == root
    assert parse(collapse(pairs).encode()) == root, "stacks need not be added up before they are written"


@given(st.binary(max_size=80) | st.lists(st.sampled_from([b"a", b";", b" ", b"\n", b"7", b"\xf0"])).map(b"".join))
@settings(max_examples=300)
def test_any_bytes_are_read_or_refused_in_one_printable_line(text: bytes) -> None:
    try:
        said = [name for stack, _ in stacks_of(parse(text)) for name in stack]
    except StacksError as refused:
        said = [str(refused)]
    assert all(text.isprintable() and ";" not in text for text in said)
