"""The page of a result: each claim with its answer and a plot, as Markdown and SVG files beside the result."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from benchmarks.headlines.finding import Answer
from kernelmark.diagnostics.profiling.charts import line_chart
from leaderboard.publishing.site.charts.plot import Axis, linear

_ORDER = tuple(Answer)


def write(result: Path) -> list[Path]:
    """Write the page and a plot for each claim that has rows; returns their paths, the page first."""
    document = json.loads(result.read_text())
    folder = result.with_suffix("")
    folder.mkdir(exist_ok=True)
    page, written = result.with_suffix(".md"), []
    lines = [
        "# What the lectures claim, measured",
        "",
        f"{document['device_name']}, torch {document['torch']}, Triton {document['triton']}, sandbox "
        f"{document['sandbox']}; `{document['command']}` with effort {document['effort']}. Ratios are medians "
        "with 95 % intervals, of calls that alternated where the two names stand around a ×.",
        "",
        "| claim | answer | s |",
        "|---|---|---:|",
    ]
    claims = sorted(document["claims"].items(), key=lambda each: _ORDER.index(each[1]["answer"]))
    lines += [f"| [{name}](#{name}) | {claim['answer']} | {claim['seconds']} |" for name, claim in claims]
    for name, claim in claims:
        lines += ["", f"## {name}", "", f"{claim['lecture']}: “{claim['says']}”", ""]
        lines += [f"**{claim['answer']}**: {claim['reason']}"]
        if claim["rows"]:
            path = folder / f"{name}.svg"
            path.write_text(drawn(name, claim["rows"]))
            written.append(path)
            lines += ["", f"![{name}: the numbers below]({folder.name}/{path.name})", "", *table(claim["rows"])]
    page.write_text("\n".join(lines) + "\n")
    return [page, *written]


def table(rows: list[dict[str, Any]]) -> list[str]:
    """The rows as a Markdown table."""
    lines = ["| case | what | value | interval |", "|---|---|---:|---|"]
    for row in rows:
        interval = "" if row["low"] is None else f"{row['low']:.4g} to {row['high']:.4g}"
        lines.append(f"| {row['case']} | {row['what']} | {row['value']:.4g} {row['unit']} | {interval} |")
    return lines


def drawn(name: str, rows: list[dict[str, Any]]) -> str:
    """The ratios by case, a line for each pair; of a claim without ratios, its first unit."""
    unit = "×" if any(row["unit"] == "×" for row in rows) else rows[0]["unit"]
    shown = [row for row in rows if row["unit"] == unit]
    cases = list(dict.fromkeys(row["case"] for row in shown))
    lines: dict[str, list[tuple[float, float]]] = {}
    labels: dict[str, list[str]] = {}
    for row in shown:
        lines.setdefault(row["what"], []).append((float(cases.index(row["case"])), row["value"]))
        labels.setdefault(row["what"], []).append(f"{row['what']}, {row['case']}: {row['value']:.4g} {unit}")
    x = Axis(-0.5, len(cases) - 0.5, [(float(at), case) for at, case in enumerate(cases)], "")
    y = linear([row["value"] for row in shown], lambda value, _: f"{value:g}", unit, zero=True)
    return line_chart(name, x, y, dict(list(lines.items())[:6]), labels)
