"""The chart of the memory that PyTorch held during some calls, as their own process reported it.

`profiles` draws a stored profile's with it, and `kernelmark profile` its own. Trusted; what it reads is hostile text.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence

from markupsafe import Markup

from leaderboard.publishing.site.charts.plot import Axis, Point, Series, linear, plot
from leaderboard.text.visible import visible

HEAD = "us,bytes"
_LINE = re.compile(r"([0-9]{1,15}\.[0-9]),(-?[0-9]{1,16})")
_POINTS = 2_000  # what a timeline may have (`harness.profiling.memory`)
_DRAWN = 300  # maximum number of steps, which keeps a page below 300 KB
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


def written(points: Iterable[tuple[float, int]]) -> str:
    """A timeline as text: µs since it began, and the bytes held from then on."""
    return f"{HEAD}\n" + "".join(f"{at_us:.1f},{nbytes}\n" for at_us, nbytes in points)


def read(text: str) -> list[tuple[float, int]]:
    """A timeline from its text, in the order of time; none unless every line is as `written` writes it."""
    head, *lines = text.splitlines()[: _POINTS + 1] or [""]
    found = [_LINE.fullmatch(line) for line in lines]
    if head != HEAD or not all(found):
        return []
    return sorted(((float(match[1]), int(match[2])) for match in found if match), key=lambda point: point[0])


def memory(points: Sequence[tuple[float, int]], device: str) -> Markup:
    """The timeline as steps; `points` must not be empty."""
    x, y, drawn = steps(points)
    peak = amount(max(held for _, held in points))
    title = f"Memory that PyTorch held on the {visible(device)}, as reported: {peak} at most"
    return plot(title, x, y, [Series("area", [*drawn, (drawn[-1][0], 0.0)])], width=720, height=170)


def steps(points: Sequence[tuple[float, int]]) -> tuple[Axis, Axis, list[Point]]:
    """The axes and the line of a timeline: what is held changes at once and then stays."""
    size, unit = _scale(max(abs(held) for _, held in points))
    line: list[Point] = [(0.0, 0.0)]
    for at_us, held in _fewer(points):
        line += [(at_us, line[-1][1]), (at_us, held / size)]
    x = linear([at for at, _ in line], lambda value, _: f"{value:,.6g} µs", zero=True)
    y = linear([held for _, held in line], lambda value, _: f"{value:,.6g} {unit}", zero=True)
    return x, y, line


def amount(nbytes: int) -> str:
    """A number of bytes with three significant digits: 268435456 → "256 MiB"."""
    size, unit = _scale(abs(nbytes))
    return f"{nbytes / size:.3g} {unit}" if abs(nbytes) < 999.5 * size else f"{nbytes / size:,.0f} {unit}"


def _scale(nbytes: int) -> tuple[int, str]:
    """The size of a suitable unit, and its name."""
    power = min(len(_UNITS) - 1, int(math.log2(nbytes)) // 10) if nbytes else 0
    return 1 << 10 * power, _UNITS[power]


def _fewer(points: Sequence[tuple[float, int]]) -> list[tuple[float, int]]:
    """At most `_DRAWN` points: of each stretch the one with the most memory, so that no peak is lost."""
    apiece = -(-len(points) // _DRAWN)
    return [max(points[at : at + apiece], key=lambda point: point[1]) for at in range(0, len(points), apiece)]
