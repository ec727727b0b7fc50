"""The site of what H200s graded: the ledgers under `benchmarks/results`, with all that no verdict of a CPU has.

Roofline, telemetry, several baselines, throttled and wide cases. Nothing is graded here: the verdicts are those that
were recorded, and what a page should say is taken from them, not from what the site makes of them.
"""

from __future__ import annotations

import html
import json
import re
from collections import defaultdict
from pathlib import Path
from statistics import geometric_mean, median

import pytest
from playwright.sync_api import Locator, Page

from benchmarks import demo
from harness.submission import Submission
from harness.verdict import BenchmarkResult, DoubtCode, Interval, Outcome, Verdict
from leaderboard.record.pooling import too_wide
from leaderboard.text.units import duration, interval, ratio
from tests.browser.conftest import Contexts, Opened
from tests.browser.test_site import (  # noqa: F401 - most of them run here too, on this module's site
    PHONE,
    SCREEN,
    everything_is_reached,
    paths,
    test_axe_finds_nothing_serious,
    test_every_page_opens_fits_and_has_no_error,
    test_no_page_names_another_host,
)

pytestmark = [pytest.mark.full, pytest.mark.browser]

# Both ways of timing, one and many cases, with and without baselines; every page takes Chromium half a second.
PROBLEMS = ("layernorm", "matmul_int4", "softmax")
SEALED = ("softmax",)
LARGEST_BYTES = 300_000


@pytest.fixture(scope="module")
def verdicts() -> list[Verdict]:
    """Every verdict that was recorded, in the order of the gradings."""
    wanted = {
        *(("baselines_h200", problem) for problem in PROBLEMS),
        *(("baselines_sealed_h200", each) for each in SEALED),
    }
    found = demo.recorded(path for path in demo.LEDGERS if (path.parent.name, path.stem) in wanted)
    assert {each.environment.device_name for each in found} == {"NVIDIA H200"}
    assert {each.timing for each in found} == {"replayed", "sealed"}
    return found


@pytest.fixture(scope="module")
def sources(verdicts: list[Verdict]) -> dict[str, Submission]:
    """By run, the source that was graded, where the kernel in `reference/` has not changed since."""
    found = {verdict.run: kept for verdict in verdicts if (kept := demo.source(verdict)) is not None}
    assert found, "every kernel has changed since it was graded"
    return found


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, verdicts: list[Verdict]) -> Path:
    """The demo site of these verdicts."""
    return demo.build(tmp_path_factory.mktemp("h200"), verdicts)


@pytest.fixture
def page(contexts: Contexts) -> Page:
    """One without scripts: everything must be told without them."""
    return contexts(java_script_enabled=False).new_page()


def standings(verdicts: list[Verdict]) -> dict[tuple[str, str, int, str], dict[str, Verdict]]:
    """By problem, its hash, protocol and way of timing: the best accepted verdict of each author."""
    boards: dict[tuple[str, str, int, str], dict[str, Verdict]] = defaultdict(dict)
    for verdict in verdicts:
        if verdict.outcome is Outcome.ACCEPTED and verdict.score is not None:
            board = boards[verdict.problem.slug, verdict.problem.sha256, verdict.protocol, verdict.timing]
            best = board.get(verdict.submission.author)
            if best is None or best.score is None or verdict.score.median_ns < best.score.median_ns:
                board[verdict.submission.author] = verdict
    return boards


def accepted(verdicts: list[Verdict]) -> list[Verdict]:
    return [each for board in standings(verdicts).values() for each in board.values()]


def text(site: Path, path: str) -> str:
    """What a page says, without its tags."""
    return html.unescape(re.sub(r"<[^>]*>", "", (site / path).read_text()))


def percent(share: float) -> str:
    return f"{100 * share:.0f} %" if share >= 0.1 else f"{100 * share:.2g} %"


def test_every_board_has_a_row_of_each_author_with_its_numbers(page: Page, site: Path, verdicts: list[Verdict]) -> None:
    """Rows as a reader sees them: by the names of their columns, of which each baseline has two."""
    for (slug, sha256, *_), board in standings(verdicts).items():
        page.goto(f"file://{site}/problems/{slug}.html")
        section = page.locator("section", has=page.locator(f"table:has(a[href*='{next(iter(board.values())).run}'])"))
        assert sha256[:12] in section.first.locator(".facts").inner_text()
        table = section.first.locator("table").first
        heads = table.locator("thead th").all_inner_texts()
        rows = [row.locator("th, td").all_inner_texts() for row in table.locator("tbody tr:not(.baseline)").all()]
        shown = {row[heads.index("author")]: row for row in rows}
        assert len(shown) == len(rows)
        assert set(shown) == set(board), slug
        for author, verdict in board.items():
            row, score = shown[author], verdict.score
            assert score is not None
            at = heads.index("time")
            assert (row[at], row[at + 1]) == _told(score)
            assert row[heads.index("run")] == verdict.run
            over = {f"× {speedup.baseline}": ratio(speedup.ratio) for speedup in verdict.speedups}
            for name in (head for head in heads if head.startswith("× ")):
                assert row[heads.index(name)] == over.pop(name, ""), (slug, author, name)
            assert over == {}, "every baseline has its column"
            shares = [b.roofline.share for b in verdict.benchmarks if b.roofline is not None]
            if shares:  # the later gradings had no calibration at hand
                assert row[heads.index("roofline")] == percent(geometric_mean(shares)), (slug, author)
            else:
                assert "roofline" not in heads
        times = [json.loads(row) for row in _values(table, heads.index("time"))]
        wide = [too_wide(score) for row in rows if (score := board[row[heads.index("author")]].score) is not None]
        assert wide == sorted(wide), "those that are known too badly to rank stand last"
        ranked = times[: wide.count(False)]
        assert ranked == sorted(ranked), "the first is the fastest"


def _values(table: Locator, column: int) -> list[str]:
    cells = table.locator(f"tbody tr:not(.baseline) > :nth-child({column + 1})")
    return [cell.get_attribute("data-v") or "" for cell in cells.all()]


def test_a_run_tells_its_cases(page: Page, site: Path, verdicts: list[Verdict]) -> None:
    for verdict in accepted(verdicts):
        page.goto(f"file://{site}/runs/{verdict.run}.html")
        assert _rows(page, "#t-cases", ("case", "time", "interval")) == [
            (b.name, *_told(b.score)) for b in verdict.benchmarks
        ]
        if any(b.roofline for b in verdict.benchmarks):
            assert _rows(page, "#t-cases", ("roofline", "limit")) == [_roof(b) for b in verdict.benchmarks]
        clocks = ("CUPTI", "events", "host clock", "calls")
        clocks = clocks if verdict.timing == "replayed" else ("time", "rounds")
        assert _rows(page, "#t-timed", ("case", *clocks)) == [(b.name, *_clocks(b)) for b in verdict.benchmarks]
        for name in {baseline.name for b in verdict.benchmarks for baseline in b.baselines}:
            over = [next((ratio(p.speedup) for p in b.baselines if p.name == name), "") for b in verdict.benchmarks]
            assert [row[0] for row in _rows(page, "#t-cases", (f"× {name}",))] == [one.split(" [")[0] for one in over]


def _told(score: Interval) -> tuple[str, str]:
    """The two cells of a time: an interval of one point, as few rounds of a quick kernel may have it, is left out."""
    median, _, bounds = interval(score).partition(" [")
    return median, f"[{bounds}" if score.low_ns < score.high_ns else ""


def _clocks(b: BenchmarkResult) -> tuple[str, ...]:
    """What each clock measured, and how often."""
    if b.mode == "replayed":
        times = (b.calls.device_ns, b.calls.event_ns, b.calls.span_ns)
        return (*(duration(round(median(time))) for time in times), str(len(b.calls.device_ns)))
    return duration(b.score.median_ns), str(len(b.rounds))


def _roof(b: BenchmarkResult) -> tuple[str, str]:
    return (percent(b.roofline.share), b.roofline.limit) if b.roofline is not None else ("", "")


def _rows(page: Page, table: str, columns: tuple[str, ...]) -> list[tuple[str, ...]]:
    """The cells of these columns."""
    found = page.locator(table)
    heads = found.locator("thead th").all_inner_texts()
    rows = [row.locator("th, td").all_inner_texts() for row in found.locator("tbody tr").all()]
    return [tuple(row[heads.index(name)] for name in columns) for row in rows]


def test_a_run_shows_what_the_device_did(site: Path, verdicts: list[Verdict]) -> None:
    """Its clock, temperature and power, wherever the driver's values moved, as the title of a plot."""
    moved = 0
    for verdict in accepted(verdicts):
        page = text(site, f"runs/{verdict.run}.html")
        what, after = ("calls", "blocks") if verdict.timing == "replayed" else ("rounds", "rounds")
        number = sum(len(b.calls.device_ns) if b.mode == "replayed" else len(b.rounds) for b in verdict.benchmarks)
        assert f"{number} {what} of {len(verdict.benchmarks)} cases" in page
        read = [each for b in verdict.benchmarks for each in b.telemetry if each is not None]
        assert read, "an H200 tells its sensors"
        for name, unit, values in (
            ("SM clock", "MHz", [t.sm_mhz for t in read if t.sm_mhz is not None]),
            ("temperature", "°C", [t.temperature_c for t in read if t.temperature_c is not None]),
            ("power", "W", [t.power_mw / 1000 for t in read if t.power_mw is not None]),
        ):
            message = f"{name}: {min(values):g} to {max(values):g} {unit} over {len(values)} {after}"
            assert (message in page) == (len(set(values)) > 1), (verdict.run, message)
            moved += message in page
    assert moved > len(accepted(verdicts)), "the sensors of most runs moved"


def test_every_doubt_is_told_and_explained(page: Page, site: Path, verdicts: list[Verdict]) -> None:
    codes = set()
    for verdict in accepted(verdicts):
        doubts = [(d, b.name) for b in verdict.benchmarks for d in b.doubts] + [(d, "") for d in verdict.doubts]
        page.goto(f"file://{site}/runs/{verdict.run}.html")
        listed = page.locator("#doubts + ul > li")
        said = [
            (each.locator("> code").last.inner_text(), each.inner_text(), each.locator(".note").all_inner_texts())
            for each in listed.all()
        ]
        assert {code for code, _, _ in said} == {d.code for d, _ in doubts}
        for code, _, meaning in said:
            known = code in {each.value for each in DoubtCode}  # the others are of protocol 4, and say it themselves
            assert [len(one.split()) > 5 for one in meaning] == [True] * known, f"{code} is not explained"
        for doubt, case in doubts:
            text = " ".join(doubt.text.replace("`", "").split())  # as a browser shows it
            told = [whole for code, whole, _ in said if code == doubt.code and text in whole]
            assert len(told) == 1
            assert case in told[0] or told[0].startswith("every case")
        codes |= {code for code, _, _ in said}
    assert {"throttled", "late_clock", "low_claim"} <= codes, "what a GPU's verdicts doubt"


def test_a_source_is_shown_where_it_is_what_was_graded(
    page: Page, site: Path, verdicts: list[Verdict], sources: dict[str, Submission]
) -> None:
    for verdict in accepted(verdicts):
        page.goto(f"file://{site}/runs/{verdict.run}.html")
        shown = page.get_by_role("region", name="Source", exact=True)
        if verdict.run in sources:
            code = sources[verdict.run].source.decode()
            told = (shown.text_content() or "").strip()
            goes_on = page.get_by_text("This is only the beginning;").count() == 1
            assert code.strip().startswith(told)
            assert (told == code.strip()) != goes_on, "what is cut says so"
            assert json.loads((site / f"runs/{verdict.run}.json").read_bytes())["source"] == code
        else:
            assert shown.count() == 0
            assert page.get_by_text("The archive does not have this source.").count() == 1


def test_the_front_and_the_devices_name_all_of_it(site: Path, verdicts: list[Verdict]) -> None:
    boards, calibration = standings(verdicts), json.loads(demo.CALIBRATION.read_bytes())
    rows = sum(len(board) for board in boards.values())
    problems = len({slug for slug, *_ in boards})
    assert f"NVIDIA H200: {problems} problems, {rows} rows" in text(site, "index.html")
    devices = text(site, "devices.html")
    assert f"{len(boards)} boards {rows} rows {problems} problems" in devices
    assert f"{calibration['copy_bytes_per_s'] / 1e9:,.0f} GB/s" in devices
    for name, rate in calibration["flops_per_s"].items():
        unit = "TOP/s" if name == "int8" else "TFLOP/s"
        assert f"{name}{rate / 1e12:,.1f} {unit}" in devices


def test_everything_is_reached_by_the_tab_key(opened: Opened, verdicts: list[Verdict]) -> None:
    most = max(accepted(verdicts), key=lambda each: (len(each.speedups), len(each.benchmarks)))
    for path in ("index.html", f"problems/{most.problem.slug}.html", f"runs/{most.run}.html", "devices.html"):
        everything_is_reached(opened(path, viewport=PHONE))


def test_no_page_is_large(site: Path) -> None:
    assert {path: size for path in paths(site) if (size := (site / path).stat().st_size) > LARGEST_BYTES} == {}


@pytest.mark.parametrize("size", [SCREEN, PHONE], ids=["screen", "phone"])
def test_labels_of_plots_are_whole_and_apart(contexts: Contexts, site: Path, size: dict[str, int]) -> None:
    """No label runs into another one, and none is cut; rounds of cases that begin alike have labels that do not."""
    page, clashes, seen = contexts(viewport=size).new_page(), [], 0
    for path in paths(site):
        page.goto(f"file://{site}/{path}")
        found = page.evaluate(
            """() => [...document.querySelectorAll("svg.plot")].map((svg) => {
              const all = [...svg.querySelectorAll("text")].filter((t) => t.textContent.trim());
              const boxes = all.map((t) => [t.textContent, t.getBoundingClientRect()]), clashes = [];
              boxes.forEach(([one, a], i) => boxes.slice(i + 1).forEach(([other, b]) => {
                if (Math.min(a.right, b.right) - Math.max(a.left, b.left) > 0.5 &&
                    Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 2.5) clashes.push([one, other]);
              }));
              return [all.map((t) => t.textContent), clashes];
            })"""
        )
        for labels, overlapping in found:
            seen += len(labels)
            clashes += [(path, *pair) for pair in overlapping]
            clashes += [(path, label) for label in labels if label.endswith(("...", "…"))]
    assert seen > 1000
    assert clashes == []


@pytest.mark.parametrize("size", [SCREEN, PHONE], ids=["screen", "phone"])
def test_the_time_is_seen_without_scrolling_sideways(
    contexts: Contexts, site: Path, verdicts: list[Verdict], size: dict[str, int]
) -> None:
    """What a board is for: who, and how fast, even on a phone."""
    pages = ["index.html", *(f"problems/{slug}.html" for slug, *_ in standings(verdicts))]
    pages += [f"runs/{each.run}.html" for each in accepted(verdicts)]
    page = contexts(viewport=size).new_page()
    for path in pages:
        page.goto(f"file://{site}/{path}")
        box = page.locator("table:is(.sortable) thead th", has_text=re.compile("^time")).first.bounding_box()
        assert box["x"] + box["width"] <= size["width"], path
