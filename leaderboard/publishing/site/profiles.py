"""The parts of a stored profile for pages: flame graphs, small tables and folded texts, within limits on their size.

The page of a profile and that of a comparison call it. Trusted; pure. Everything in a profile is hostile text.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from markupsafe import Markup

from harness.profiling.flame_graph import MAX_BYTES, flame_graph
from harness.profiling.stacks import parse
from leaderboard.publishing.site import markup
from leaderboard.publishing.site.charts import memory
from leaderboard.record.profile import MEMORY_DEVICES, StoredProfile, memory_file

_NUMBER = re.compile(r"[0-9].{0,20}")
_CELL_BYTES, _NAME_BYTES = 24, 200  # of the markup around a cell, and around a text


class SmallTable(NamedTuple):
    """A small table, cut to the available room."""

    name: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    left_out: int

    @property
    def is_number(self) -> list[bool]:
        """For each column, whether all its cells are short and begin with a digit: such columns are right-aligned."""
        return [all(not cell or _NUMBER.fullmatch(cell) for cell in column) for column in zip(*self.rows, strict=True)]


class MemoryChart(NamedTuple):
    """The memory held on a device over time: a chart, the most at once, and the file with the numbers."""

    device: str
    chart: Markup
    peak: str
    file: str


class FoldedText(NamedTuple):
    """A text by its name; the page links to one for which there is no room."""

    name: str
    nbytes: int
    shown: Markup | None


def flame(profile: StoredProfile, name: str, *, max_bytes: int = MAX_BYTES, style: bool = True) -> Markup:
    """The flame graph of these stacks, whose name ends in the unit; without `style` for the middle of a page."""
    what, _, unit = name.rpartition(", ")
    root = parse(profile.stacks[name].encode())
    # ElementTree escaped all names in it.
    return Markup(flame_graph(root, title=what or name, unit=unit, max_bytes=max_bytes, style=style))


def memories(profile: StoredProfile) -> list[MemoryChart]:
    """The charts of memory, for each device whose file can be read as a timeline."""
    read = ((device, memory_file(device)) for device in MEMORY_DEVICES)
    found = ((device, file, memory.read(profile.files.get(file, ""))) for device, file in read)
    return [
        MemoryChart(device, memory.memory(points, device), memory.amount(max(held for _, held in points)), file)
        for device, file, points in found
        if points
    ]


def tables(profile: StoredProfile, room: int) -> list[SmallTable]:
    """The small tables; their cells have about `room` bytes together."""
    shown = []
    for name, (head, *rows) in profile.rows.items():
        kept = []
        for row in (head, *rows):
            room -= sum(len(markup.lines(cell).encode()) + _CELL_BYTES for cell in row)
            if room < 0:
                break
            kept.append(row)
        if kept:
            shown.append(SmallTable(name, head, tuple(kept[1:]), len(rows) + 1 - len(kept)))
    return shown


def texts(profile: StoredProfile, kind: str, room: int) -> tuple[list[FoldedText], int]:
    """The texts of a kind ("tables" or "files") that half of `room` bytes suffices to name, and how many others there
    are. Those that fit into the other half have their text.
    """
    listed, text_room = list[FoldedText](), room // 2
    name_room = room - text_room
    section: dict[str, str] = getattr(profile, kind)
    for name, text in section.items():
        name_room -= 2 * len(markup.lines(name).encode()) + _NAME_BYTES
        if name_room < 0:
            break
        nbytes = len(text.encode())
        shown = markup.lines(text, len(text)) if nbytes <= text_room else None
        if shown is not None and len(shown.encode()) > text_room:
            shown = None
        text_room -= len(shown.encode()) if shown is not None else 0
        listed.append(FoldedText(name, nbytes, shown))
    return listed, len(section) - len(listed)


def file(profile: StoredProfile, kind: str, name: str) -> bytes:
    """One part as a file next to a page: a flame graph as a standalone SVG, or a text."""
    if kind == "stacks":
        return str(flame(profile, name)).encode()
    return markup.plain(getattr(profile, kind)[name]).encode("utf-8", "backslashreplace")
