"""Draws a tree of frames as a flame graph: one self-contained SVG file, without scripts, links or external resources.

The root is at the top and callees are below their callers, so that the header and the outermost frames stay in view
when stacks are deep. The width of a box is proportional to its frame's value, and the browser shows the full name in a
tooltip. Trusted; the names are hostile, so they are made printable, cut to fit their box and escaped by ElementTree.
Equal trees give equal bytes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from xml.etree.ElementTree import Element, SubElement, tostring
from zlib import crc32

from harness.profiling.stacks import Frame, frame_name
from harness.wire.checks import line

MAX_BYTES = 2_000_000  # of the SVG in UTF-8
_HEADER_BYTES = 8_000  # more than all but the frames takes

# Pixels.
_WIDTH = 1200
_MARGIN = 10
_HEADER = 56
_ROW, _GAP = 18, 1
_PADDING = 4  # left and right of a label
_LETTER = 7.25  # a character of 12 pixels in the usual monospaced fonts
_NARROWEST = 0.5

_TITLE, _UNIT = 90, 20  # characters
_FONT = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"
GROUND, INK = "#ffffff", "#15181d"  # of light pages; the labels in boxes have the same ink in dark ones
DARK_GROUND, DARK_INK = "#121417", "#e4e7eb"
# Twelve hues of the same luminance, 0.275: 3:1 or more from both grounds, and 4.5:1 or more from the labels' ink.
COLOURS = (
    *("#d67274", "#cf7a47", "#b88721", "#929330", "#609e52", "#1ba17f"),
    *("#009ea6", "#219ac8", "#618fdc", "#9184d9", "#b679c3", "#cc729f"),
)
_STYLE = f"""
svg.flame-graph {{ color-scheme: light dark; max-width: 100%; height: auto; }}
svg.flame-graph svg:hover rect {{ stroke: {INK}; stroke-width: 3; }}
@media (prefers-color-scheme: dark) {{
  svg.flame-graph > rect {{ fill: {DARK_GROUND}; }}
  svg.flame-graph > text {{ fill: {DARK_INK}; }}
}}
"""

# A function of Python is `folder/file.py(12): name` to the profiler, and `folder/file.py(12):_name` in its export.
_PYTHON = re.compile(r"(?:.*/)?([^/]*\(\d+\):[ _](.+))")


@dataclass(frozen=True)
class _FramePosition:
    """A frame, its depth, and the sum of the values to its left."""

    frame: Frame
    depth: int
    left: int


def flame_graph(root: Frame, *, title: str, unit: str, max_bytes: int = MAX_BYTES, style: bool = True) -> str:
    """Draw; `title` says what was measured, `unit` what the values are (as `µs`). Write the result as UTF-8.

    It has at most `max_bytes`. Frames narrower than half a pixel, and the smallest that would make it larger, are left
    out and counted in the header. Without `style` it is for a page whose style sheet knows the class `flame-graph`.
    """
    title, unit = line(_TITLE)(title[:_TITLE]), line(_UNIT)(unit[:_UNIT])
    boxes, rows, frames = _boxes(root, unit, max_bytes)
    height = _HEADER + rows * _ROW + _MARGIN
    svg = Element("svg", {"xmlns": "http://www.w3.org/2000/svg", "class": "flame-graph", "width": str(_WIDTH)})
    svg.set("height", str(height))
    svg.set("viewBox", f"0 0 {_WIDTH} {height}")
    svg.set("font-family", _FONT)
    svg.set("font-size", "12")
    svg.set("fill", INK)
    SubElement(svg, "title").text = title
    if style:
        SubElement(svg, "style").text = _STYLE
    # A ground of its own: a page that shows the file as an image may be light where the reader's system is dark.
    SubElement(svg, "rect", {"width": "100%", "height": "100%", "fill": GROUND})
    heading = SubElement(svg, "text", {"x": str(_MARGIN), "y": "22", "font-size": "15", "font-weight": "bold"})
    heading.text = f"{title}: {root.value:,} {unit}"
    SubElement(svg, "text", {"x": str(_MARGIN), "y": "43"}).text = _note(len(boxes), frames)
    svg.extend(boxes)
    return tostring(svg, encoding="unicode")


def _note(drawn: int, frames: int) -> str:
    if not drawn:
        return "Nothing was recorded."
    note = "A box is a function, as wide as its share of the whole; below it is what it called."
    return note if drawn == frames else f"{note} Not shown: {frames - drawn:,} of {frames:,}, the smallest."


def _boxes(root: Frame, unit: str, max_bytes: int) -> tuple[list[Element], int, int]:
    """The boxes to draw, the number of their rows, and the number of frames in the tree."""
    wide, frames = [], 0
    for position in _positions(root):
        frames += 1
        if position.frame.value > 0 and _pixels(position.frame.value, root.value) >= _NARROWEST:
            wide.append(position)
    # Largest first: a caller is at least as large as what it called, so each box that is drawn has its caller above it.
    wide.sort(key=lambda position: (-position.frame.value, position.depth, position.left))
    boxes: list[Element] = []
    remaining, rows = max_bytes - _HEADER_BYTES, 0
    for position in wide:
        box = _box(position, root.value, unit)
        remaining -= len(tostring(box, encoding="unicode").encode())
        if remaining < 0:
            break
        boxes.append(box)
        rows = max(rows, position.depth + 1)
    return boxes, rows, frames


def _positions(root: Frame) -> Iterator[_FramePosition]:
    remaining = [_FramePosition(root, 0, 0)]
    while remaining:
        position = remaining.pop()
        yield position
        left = position.left
        for child in position.frame.children:
            remaining.append(_FramePosition(child, position.depth + 1, left))
            left += child.value


def _box(position: _FramePosition, whole: int, unit: str) -> Element:
    """Draw one frame as a nested svg element, which clips its content, so that no wide character leaves the box."""
    frame, width = position.frame, _pixels(position.frame.value, whole)
    name = frame_name(frame.name)
    box = Element(
        "svg", {"x": f"{_MARGIN + _pixels(position.left, whole):.1f}", "y": str(_HEADER + position.depth * _ROW)}
    )
    box.set("width", f"{max(width - _GAP, _NARROWEST):.1f}")
    box.set("height", str(_ROW - _GAP))
    SubElement(box, "title").text = f"{name}\n{frame.value:,} {unit}, {100 * frame.value / whole:.3g} %"
    SubElement(box, "rect", {"width": "100%", "height": "100%", "fill": COLOURS[crc32(name.encode()) % len(COLOURS)]})
    if label := _label(name, int((width - _GAP - 2 * _PADDING) / _LETTER)):
        SubElement(box, "text", {"x": str(_PADDING), "y": "13"}).text = label
    return box


def _label(name: str, letters: int) -> str:
    """Shorten a name to fit. A Python function first loses its folder, then its file."""
    python = _PYTHON.fullmatch(name)
    short = name
    for short in (name, *(python.groups() if python else ())):
        if len(short) <= letters:
            return short
    return f"{short[: letters - 1]}…" if letters >= 3 else ""


def _pixels(value: int, whole: int) -> float:
    return (_WIDTH - 2 * _MARGIN) * value / whole
