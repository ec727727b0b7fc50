"""Line charts as SVG files that stand alone: rates by size, memory over time. Trusted; names in them are escaped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from markupsafe import escape

from leaderboard.publishing.site.charts.plot import Axis, PlotMark, Point, Series, plot
from leaderboard.text.visible import visible

_COLOURS = ("#0969da", "#bc4c00", "#1a7f37", "#8250df", "#cf222e", "#6e7781")  # of lines, in light pages and in dark
_STYLE = """<style>svg { font: 11px system-ui, sans-serif; color-scheme: light dark; }
svg path { fill: none; stroke-width: 2; } .axis path { stroke: #8c959f; stroke-width: 1; }
.axis .guide { stroke-opacity: .35; } .axis text, .title text { fill: #6e7781; text-anchor: middle; }
.axis.y text { text-anchor: end; }
"""


def line_chart(
    title: str, x: Axis, y: Axis, lines: Mapping[str, Sequence[Point]], labels: Mapping[str, Sequence[str]]
) -> str:
    """A line per name, with a legend if there are several; points that have labels are dots, which show them."""
    series = [Series(str(k), points) for k, points in enumerate(lines.values())]
    marks = [
        PlotMark(at, label, style=f"m-{k}")
        for k, (name, points) in enumerate(lines.items())
        for at, label in zip(points, labels.get(name, ()), strict=name in labels)
    ]
    drawn = str(plot(title, x, y, series, marks, width=760, height=380))
    colours = "".join(
        f".s-{k} path {{ stroke: {c}; }} .m-{k} path {{ fill: {c}; }} .l-{k} {{ fill: {c}; }}\n"
        for k, c in enumerate(_COLOURS[: len(lines)])
    )
    named = lines if len(lines) > 1 else {}
    legend = "".join(
        f'<text class="l-{k}" x="70" y="{22 + 15 * k}" font-weight="bold">{escape(visible(name))}</text>'
        for k, name in enumerate(named)
    )
    head, _, rest = drawn.partition("</title>")
    return f"{head}</title>{_STYLE}{colours}</style>{rest.removesuffix('</svg>')}{legend}</svg>"
