"""Compares libraries that draw plots with the site's own drawing: `python -m benchmarks.plots` (docs/decisions/0008).

One scatter plot of 48 points in 5 colours and 6 shapes, each with a link and a label, on logarithmic axes. It is drawn
without a browser, in Node, by the libraries that can; and in Chromium, by one bundled and minified script for each,
under the Content-Security-Policy of the site. Installs the libraries from npm into `build/plots`; needs Node and
Chromium. Prints the figures and writes them to `benchmarks/results/plots.json`.
"""

from __future__ import annotations

import gzip
import json
import os
import platform
import random
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter
from typing import Any

from playwright.sync_api import sync_playwright

from harness.device.cpu import cpu_name
from leaderboard.publishing.site.charts.plot import PlotMark, logarithmic, plot

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
BUILD = ROOT / "build" / "plots"
SITE = ROOT / "leaderboard" / "publishing" / "site"
RESULT = ROOT / "benchmarks" / "results" / "plots.json"
VERSIONS = {
    "@observablehq/plot": "0.6.17", "chart.js": "4.6.1", "echarts": "6.1.0", "plotly.js-basic-dist-min": "4.1.1",
    "uplot": "1.6.32", "vega": "6.4.0", "vega-interpreter": "2.3.2", "vega-lite": "6.4.3",
    "esbuild": "0.28.2", "jsdom": "29.1.1",
}  # fmt: skip


VL_CONVERT = "vl-convert-python==1.9.0.post1"


def points() -> list[dict[str, Any]]:
    draw = random.Random(1)
    return [
        {
            "x": 2.0 ** draw.uniform(-3, 10), "y": 10 ** draw.uniform(11, 14.5), "author": f"author {index % 5}",
            "case": f"case {index % 6}", "link": f"runs/{index:016x}.html",
            "label": f"author {index % 5}, case {index % 6}: {index} TFLOP/s, {index} % of the roof",
        }
        for index in range(48)
    ]  # fmt: skip


def install() -> None:
    BUILD.mkdir(parents=True, exist_ok=True)
    (BUILD / "package.json").write_text(json.dumps({"private": True, "dependencies": VERSIONS}))
    subprocess.run(["npm", "install", "--silent", "--no-audit", "--no-fund"], cwd=BUILD, check=True)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "--target", str(BUILD / "python"), "--upgrade", VL_CONVERT], check=True)
    for path in (*HERE.glob("*.mjs"), *HERE.glob("*.json"), *(HERE / "in_browser").glob("*.js")):
        shutil.copy(path, BUILD)
    (BUILD / "points.json").write_text(json.dumps(points()))
    (BUILD / "points.js").write_text(f"const points = {json.dumps(points())};")


def directly() -> str:
    """As `charts.figure` draws its roofline."""
    given = points()
    marks = [
        PlotMark((p["x"], p["y"]), p["label"], p["author"], p["link"], f"by{index % 5 + 1}", index % 6, index % 6)
        for index, p in enumerate(given)
    ]
    x, y = (logarithmic([p[name] for p in given], lambda value: f"{value:g}", name) for name in "xy")
    return str(plot("48 points", x, y, [], marks))


def by_vl_convert() -> str:
    """Vega-Lite once more, by the package from PyPI that the build could call without Node."""
    sys.path.insert(0, str(BUILD / "python"))
    import vl_convert

    spec = {**json.loads((HERE / "vega-lite.json").read_text()), "data": {"values": points()}}
    return str(vl_convert.vegalite_to_svg(spec))


def drawn(draw: Callable[[], str]) -> dict[str, Any]:
    times, svg = [], draw()
    for _ in range(40):
        start = perf_counter()
        draw()
        times.append(1000 * (perf_counter() - start))
    return {
        "fastest_ms": min(times), "bytes": len(svg.encode()), "same_each_time": svg == draw(),
        "style_in_it": bool(re.search('<style|style="', svg)), "links": "<a " in svg,
        "colours_in_attributes": bool(re.search('(fill|stroke)="(#|rgb)', svg)),
    }  # fmt: skip


def on_server() -> dict[str, dict[str, Any]]:
    command = ["node", "on_server.mjs", "points.json", "."]
    said = subprocess.run(command, cwd=BUILD, capture_output=True, text=True, check=True).stdout
    return {**json.loads(said.splitlines()[-1]), "vl-convert": drawn(by_vl_convert), "directly": drawn(directly)}


def in_browser() -> dict[str, dict[str, Any]]:
    policy = re.search('http-equiv.*?content="(.*?)"', (SITE / "templates/base.html").read_text())
    assert policy is not None
    (BUILD / "sized.css").write_text("#place { width: 460px; height: 220px; }")
    found = {}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for library in sorted((HERE / "in_browser").glob("*.js")):
            name = library.stem
            if name == "run":
                continue
            bundle = BUILD / f"{name}.bundle.js"
            command = ["node_modules/.bin/esbuild", "run.js", "--bundle", "--minify", "--log-level=error"]
            command += [f"--alias:library=./{library.name}", f"--outfile={bundle}"]
            subprocess.run(command, cwd=BUILD, check=True)
            page_path = BUILD / f"{name}.html"
            page_path.write_text(
                f'<!doctype html><meta charset="utf-8">'
                f'<meta http-equiv="Content-Security-Policy" content="{policy[1]}">'
                f'<link rel="stylesheet" href="sized.css"><div id="place"></div>'
                f'<script src="points.js"></script><script src="{bundle.name}"></script>'
            )
            page = browser.new_page()
            page.goto(f"file://{page_path}")
            # `wait_for_function` would evaluate text in the page, which the policy forbids.
            while (told := page.evaluate("window.result")) is None:
                page.wait_for_timeout(50)
            script = bundle.read_bytes()
            sizes = {"script_bytes": len(script), "script_gzip_bytes": len(gzip.compress(script, 9, mtime=0))}
            found[name] = {**sizes, **told}
            page.screenshot(path=BUILD / f"{name}.png")
            page.close()
        browser.close()
    own = (SITE / "static" / "plots.js").read_bytes()
    found["directly"] = {"script_bytes": len(own), "script_gzip_bytes": len(gzip.compress(own, 9, mtime=0))}
    return found


def main() -> None:
    install()
    result = {
        "what": "one plot of 48 points by each library: without a browser, and in one under the site's policy",
        "command": "python -m benchmarks.plots",
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "device": cpu_name(),
        "cpus": os.cpu_count(),
        "python": platform.python_version(),
        "node": subprocess.run(["node", "--version"], capture_output=True, text=True, check=True).stdout.strip(),
        "versions": {**VERSIONS, **dict([VL_CONVERT.split("==")])},
        "without_a_browser": on_server(),
        "in_chromium": in_browser(),
        "load_average": os.getloadavg()[0],
    }
    text = json.dumps(result, indent=1)
    print(text)
    RESULT.write_text(text + "\n")


if __name__ == "__main__":
    main()
